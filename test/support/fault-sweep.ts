// Lets the calls of a scripted run to the disk fail, one after the other, and looks at what came of the promises.
import { AgentError } from "../../src/core/errors.ts";
import { openStore, takeAll } from "./disk-store.ts";
import { type DiskCall, failure, MemoryDisk } from "./memory-disk.ts";
import { emptyRun, keyOf, runScript } from "./storage-script.ts";

export interface FaultSweep {
  /** What the disk says, or `short`: it writes half and says so. */
  readonly code: string;
  readonly times: "once" | "for ever";
  readonly whenFull: "block" | "dropOldest";
}

export const faultCodes = ["EIO", "ENOSPC", "EROFS", "EMFILE", "EACCES", "EINTR", "short"] as const;
/** A full disk refuses these alone. */
const takesRoom: readonly DiskCall[] = ["write", "sync", "setSize", "open", "makeFolder"];

/** How many calls the script makes to a disk that works. */
export function callsOfScript(): number {
  const disk = new MemoryDisk();
  runScript(disk, emptyRun());
  return disk.calls;
}

/** Runs the script once for each of the calls, which fails. Gives what was wrong with it, each with the number of the call. */
export function sweepFaults(sweep: FaultSweep, failingCalls: Iterable<number>): { runs: number; wrong: string[] } {
  const wrong: string[] = [];
  let runs = 0;
  for (const failing of failingCalls) {
    runs++;
    for (const problem of problemsOf(sweep, failing))
      wrong.push(`${sweep.code} ${sweep.times}, call ${failing}: ${problem}`);
  }
  return { runs, wrong };
}

function problemsOf({ code, times, whenFull }: FaultSweep, failing: number): string[] {
  const disk = new MemoryDisk();
  const problems: string[] = [];
  const failedSyncs = new Set<string>();
  disk.fault = (call, path) => {
    const hit = times === "once" ? disk.calls === failing : disk.calls >= failing;
    // A descriptor that failed to sync is never synced again: each open of a file is another descriptor.
    if (call === "open") failedSyncs.delete(path);
    if (call === "sync" && failedSyncs.has(path)) problems.push(`${path} was synced again after a sync that failed`);
    if (!hit || call === "close") return undefined;
    if (code === "short") return call === "write" ? "short" : undefined;
    if (code === "ENOSPC" && !takesRoom.includes(call)) return undefined;
    if (call === "sync") failedSyncs.add(path);
    throw failure(code, path);
  };
  const run = emptyRun();
  runScript(disk, run, 0, { whenFull });
  disk.fault = () => undefined;

  const { store } = openStore(
    disk.afterPowerCut(() => false),
    { at: 1_000 },
  );
  const points = takeAll(store).map(keyOf);
  const there = new Set(points);
  const lost = [...run.acknowledged].filter((key) => !there.has(key) && !run.settled.has(key));
  const unknown = points.filter((key) => !run.acknowledged.has(key) && !run.unsure.has(key));
  if (unknown.length > 0) problems.push(`${unknown.length} points that were never appended`);
  const twice = points.filter((key, i) => points.indexOf(key) !== i && !run.repeated.has(key));
  if (twice.length > 0) problems.push(`${twice.length} points came twice`);

  const { appendedPoints, settledPoints, refusedPoints, unsettledPoints, losses } = store.stats();
  const missing = losses.reduce((sum, loss) => sum + loss.points, 0);
  if (settledPoints + refusedPoints + unsettledPoints + missing !== appendedPoints)
    problems.push("the accounts do not add up");
  // A disk that stays full, so full that not even the state can be written over itself: what is settled is removed all
  // the same, and after a power cut the books say that it is missing, though it was delivered. After a minute the oldest
  // points go as well where that is allowed.
  const staysFull = code === "ENOSPC" && times === "for ever";
  const mayLose = staysFull && whenFull === "dropOldest" ? missing : 0;
  if (lost.length > mayLose) problems.push(`lost ${lost.join(", ")}`);
  if (missing > lost.length + (staysFull ? run.settled.size : 0)) problems.push(`says that ${missing} points are lost`);

  for (const error of run.errors) {
    const told = error instanceof AgentError ? error.code : error instanceof Error && "code" in error && error.code;
    if (told !== "BUFFER_UNAVAILABLE" && told !== code) problems.push(`an append rejected with ${String(error)}`);
  }
  if (times === "once" && code === "short" && run.errors.length > 0) problems.push("a short write made an append fail");
  return problems;
}
