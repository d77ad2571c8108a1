// How far something is that takes its time: a line for `Console.progress`.

const width = 24;

/** `[######------------------] 25 %, 12 of 48 segments`. `what` in the plural. */
export function progressBar(done: number, total: number, what: string): string {
  const share = total > 0 ? Math.min(1, done / total) : 1;
  const filled = Math.floor(share * width);
  return `[${"#".repeat(filled)}${"-".repeat(width - filled)}] ${Math.floor(share * 100)} %, ${done} of ${total} ${what}`;
}
