// Makes each disk call of a scripted run fail in turn, and checks the promises afterwards.
import { AgentError } from "../../src/core/errors.ts";
import { openStore, takeAll } from "./disk-store.ts";
import { type DiskCall, failure, MemoryDisk } from "./memory-disk.ts";
import { emptyRun, keyOf, runScript } from "./storage-script.ts";

export interface FaultSweep {
  /** The error code of the disk, or `short`: it writes half of the bytes and reports that. */
  readonly code: string;
  readonly times: "once" | "for ever";
  readonly whenFull: "block" | "dropOldest";
}

export const faultCodes = ["EIO", "ENOSPC", "EROFS", "EMFILE", "EACCES", "EINTR", "short"] as const;
/** The only calls that a full disk refuses. */
const takesRoom: readonly DiskCall[] = ["write", "sync", "setSize", "open", "makeFolder"];

/** The number of calls of the script to a disk without faults. */
export function callsOfScript(): number {
  const disk = new MemoryDisk();
  runScript(disk, emptyRun());
  return disk.calls;
}

/** Runs the script once per failing call. Returns the broken promises, each with the number of the call. */
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
    // After a failed sync a descriptor is never synced again; opening the file gives a new descriptor.
    if (call === "open") failedSyncs.delete(path);
    if (call === "sync" && failedSyncs.has(path)) problems.push(`${path} was synced again after a sync that failed`);
    if (!hit || call === "close") return undefined;
    if (code === "short") return call === "write" ? "short" : undefined;
    if (code === "ENOSPC" && !takesRoom.includes(call)) return undefined;
    if (call === "sync") failedSyncs.add(path);
    throw failure(code, path);
  };
  const run = emptyRun();
  // A file that stays open keeps its volume from being unmounted, and one for each failure ends in EMFILE.
  const closed = () => problems.push(...disk.openFiles.map((path) => `${path} was not closed`));
  runScript(disk, run, 0, { whenFull }, closed);
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
    problems.push("the counters do not add up");
  // On a disk that stays full, not even the state can be overwritten. Settled segments are removed nevertheless, and
  // after a power cut their points count as lost although they were delivered. Where dropping is permitted, the oldest
  // points are dropped after a minute as well.
  const staysFull = code === "ENOSPC" && times === "for ever";
  const mayLose = staysFull && whenFull === "dropOldest" ? missing : 0;
  if (lost.length > mayLose) problems.push(`lost ${lost.join(", ")}`);
  if (missing > lost.length + (staysFull ? run.settled.size : 0)) problems.push(`says that ${missing} points are lost`);

  for (const error of run.errors) {
    const found = error instanceof AgentError ? error.code : error instanceof Error && "code" in error && error.code;
    if (found !== "BUFFER_UNAVAILABLE" && found !== code) problems.push(`an append rejected with ${String(error)}`);
  }
  if (times === "once" && code === "short" && run.errors.length > 0) problems.push("a short write made an append fail");
  return problems;
}
