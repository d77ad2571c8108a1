// What each exit status means. From 64 on they are those of sysexits.h.

export const exitStatus = {
  done: 0,
  failed: 1,
  usage: 2,
  unreachable: 69,
  inUse: 75,
  refused: 77,
  config: 78,
} as const;
export type ExitStatus = (typeof exitStatus)[keyof typeof exitStatus];
