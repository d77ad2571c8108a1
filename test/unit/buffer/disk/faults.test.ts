// Every call to the disk fails once, and from then on, with every error: nothing acknowledged is lost, nothing is unexplained.
import { expect, test } from "vitest";
import { AgentError } from "../../../../src/core/errors.ts";
import { openStore, takeAll } from "../../../support/disk-store.ts";
import { type DiskCall, failure, MemoryDisk } from "../../../support/memory-disk.ts";
import { emptyRun, keyOf, runScript } from "../../../support/storage-script.ts";

const calls = (() => {
  const disk = new MemoryDisk();
  runScript(disk, emptyRun());
  return disk.calls;
})();

const long = process.env.TAGFERRY_LONG !== undefined;
const codes = long ? ["EIO", "ENOSPC", "EROFS", "EMFILE", "EACCES", "EINTR", "short"] : ["EIO", "ENOSPC", "short"];
const errors = codes.flatMap((code) => [
  { code, times: "once", whenFull: "block" as const },
  { code, times: "for ever", whenFull: "block" as const },
  // One refusal for want of room costs nothing stored either, where dropping is allowed.
  ...(code === "ENOSPC" ? [{ code, times: "once", whenFull: "dropOldest" as const }] : []),
]);
const takesRoom: readonly DiskCall[] = ["write", "sync", "setSize", "open", "makeFolder"];

/** The short form looks at every second call, and at the others with the other errors. */
const stride = long ? 1 : 2;

test.each(errors)(`$code $times at the ${calls} calls of a run ($whenFull)`, ({ code, times, whenFull }) => {
  for (let failing = 1 + (times === "once" ? 0 : stride - 1); failing <= calls; failing += stride) {
    const disk = new MemoryDisk();
    const failedSyncs = new Set<string>();
    const syncedAfterFailure: string[] = [];
    disk.fault = (call, path) => {
      const hit = times === "once" ? disk.calls === failing : disk.calls >= failing;
      // A descriptor that failed to sync is never synced again: each open of a file is another descriptor.
      if (call === "open") failedSyncs.delete(path);
      if (call === "sync" && failedSyncs.has(path)) syncedAfterFailure.push(path);
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
    const { appendedPoints, settledPoints, refusedPoints, unsettledPoints, losses } = store.stats();
    const lost = [...run.acknowledged].filter((key) => !there.has(key) && !run.settled.has(key));
    expect({ failing, lost, losses }).toEqual({ failing, lost: [], losses: [] });
    expect({ failing, unknown: points.filter((key) => !run.acknowledged.has(key) && !run.unsure.has(key)) }).toEqual({
      failing,
      unknown: [],
    });
    expect({ failing, twice: points.length - there.size }).toEqual({ failing, twice: 0 });
    expect(settledPoints + refusedPoints + unsettledPoints).toBe(appendedPoints);
    expect({ failing, syncedAfterFailure }).toEqual({ failing, syncedAfterFailure: [] });
    for (const error of run.errors)
      if (!(error instanceof AgentError && error.code === "BUFFER_UNAVAILABLE"))
        expect(error).toHaveProperty("code", code);
    if (times === "once" && code === "short") expect(run.errors).toEqual([]);
  }
});

test("without the loop for short writes acknowledged points are lost", () => {
  let lost = 0;
  for (let failing = 1; failing <= calls; failing += 3) {
    const disk = new MemoryDisk();
    disk.fault = (call) => (disk.calls === failing && call === "write" ? "short" : undefined);
    // A disk that took half and says it took all is what a caller sees who does not look at the count.
    const open = disk.open.bind(disk);
    disk.open = (path, mode) => {
      const file = open(path, mode);
      return { ...file, write: (bytes, position) => Math.max(bytes.length, file.write(bytes, position)) };
    };
    const run = emptyRun();
    runScript(disk, run);
    const there = new Set(takeAll(openStore(disk.afterPowerCut(() => false)).store).map(keyOf));
    lost += [...run.acknowledged].filter((key) => !there.has(key) && !run.settled.has(key)).length;
  }
  expect(lost).toBeGreaterThan(0);
});
