// What macOS or Windows lacks. A test that needs one of these runs where it exists: `test.runIf(has.signals)(…)`.
import { statSync } from "node:fs";
import { expect } from "vitest";

const windows = process.platform === "win32";

export const has = {
  /** Permission bits and owners. Windows has access control lists, of which Node shows nothing. */
  permissionBits: !windows,
  /** On Windows only administrators and developers create symbolic links. */
  symbolicLinks: !windows,
  /** Windows ends a process at once in place of SIGTERM and SIGHUP, and suspends none. */
  signals: !windows,
  /** `sh`, `bash`, `tar`, `mkfifo`, and programs that start by their first line. */
  shell: !windows,
  /** ENOTDIR where a path leads through a file. Windows says that there is no such file. */
  misplacedFiles: !windows,
  /** Windows may refuse to delete or replace a file that is open, as SQLite opens it. */
  removalOfOpenFiles: !windows,
  /** Where a connection is reset, Windows throws away an answer that came before the whole request was sent. */
  earlyAnswers: !windows,
  /** Windows takes megabytes for a reader that does not read. */
  boundedLoopback: !windows,
  /** On Windows, bytes written to a loopback socket can be read only after further turns of the event loop. */
  immediateLoopback: !windows,
  /** 127.0.0.2 and so on. macOS has 127.0.0.1 alone. */
  loopbackAddresses: process.platform !== "darwin",
  /** The packages for Debian, their places below /etc and /var/lib, and systemd. */
  packages: !windows,
  /** /proc and /dev/full. */
  linuxFiles: process.platform === "linux",
} as const;

/** Expects these permissions of a file or folder where there are permission bits. */
export function expectMode(path: string, mode: number): void {
  if (has.permissionBits) expect(statSync(path).mode & 0o777).toBe(mode);
}
