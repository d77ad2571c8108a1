// Every call to the disk fails once, or from then on. No acknowledged point is lost, and every loss is explained.
import { expect, test, vi } from "vitest";
import { append, openStore, type Triple, takeAll } from "../../../support/disk-store.ts";
import { callsOfScript, type FaultSweep, sweepFaults } from "../../../support/fault-sweep.ts";
import { failure, MemoryDisk } from "../../../support/memory-disk.ts";
import { emptyRun, keyOf, runScript } from "../../../support/storage-script.ts";

// Hundreds of short runs. The limit allows for a busy machine.
vi.setConfig({ testTimeout: 180_000 });

const calls = callsOfScript();
/** Every `stride`-th call from `first` on. `faults.peer.test.ts` tries all calls with every error. */
const some = (first: number, stride: number) =>
  Array.from({ length: Math.ceil((calls - first + 1) / stride) }, (_, i) => first + i * stride);

const sweeps: (FaultSweep & { calls: number[] })[] = [
  { code: "EIO", times: "once", whenFull: "block", calls: some(1, 3) },
  { code: "EIO", times: "for ever", whenFull: "block", calls: some(2, 3) },
  { code: "ENOSPC", times: "once", whenFull: "block", calls: some(2, 5) },
  // With dropOldest, too, a single ENOSPC must not cost a stored point.
  { code: "ENOSPC", times: "once", whenFull: "dropOldest", calls: some(1, 5) },
  { code: "ENOSPC", times: "for ever", whenFull: "block", calls: some(3, 5) },
  { code: "short", times: "once", whenFull: "block", calls: some(1, 5) },
  { code: "short", times: "for ever", whenFull: "block", calls: some(2, 5) },
];

test.each(sweeps)("$code $times at any call of a run ($whenFull)", (sweep) => {
  const { runs, wrong } = sweepFaults(sweep, sweep.calls);

  expect(wrong.slice(0, 5)).toEqual([]);
  expect(runs).toBeGreaterThan(60);
});

test("a write that is found at startup and cannot be synced does not count as stored", () => {
  const disk = new MemoryDisk();
  const points = (from: number): Triple[] => [0, 1, 2].map((i) => ["a", 1.7e15 + (from + i) * 1_000, i]);
  append(openStore(disk).store, points(0));
  // The segment is written, and the process is killed before the sync.
  disk.fault = (call, path) => (call === "sync" && path.includes("seg-") ? "ignore" : undefined);
  append(openStore(disk, { seed: 2 }).store, points(10));
  let failed = 0;
  disk.fault = (call, path) => {
    if (call !== "sync" || !path.includes("seg-") || failed++ > 0) return undefined;
    throw failure("EIO", path);
  };

  const { store } = openStore(disk, { seed: 3 });
  append(store, points(10));

  expect(failed).toBeGreaterThan(0);
  const there = takeAll(openStore(disk.afterPowerCut(() => false)).store).map(([, time]) => time);
  expect(there).toEqual(expect.arrayContaining(points(10).map(([, time]) => time)));
});

test("without the loop for short writes acknowledged points are lost", () => {
  let lost = 0;
  for (let failing = 1; failing <= calls; failing += 3) {
    const disk = new MemoryDisk();
    disk.fault = (call) => (disk.calls === failing && call === "write" ? "short" : undefined);
    // Reports a short write as a full one, which is how it looks to a caller that ignores the count.
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
