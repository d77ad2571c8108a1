// The power fails before every call to the disk; of what was not synced, every combination of blocks, sizes and names may
// have reached it. Each state is opened and must hold what was acknowledged.
import { expect, test } from "vitest";
import { openStore, takeAll } from "../../../support/disk-store.ts";
import { MemoryDisk } from "../../../support/memory-disk.ts";
import { seeded } from "../../../support/runtime.ts";
import { emptyRun, keyOf, runScript } from "../../../support/storage-script.ts";

/** States for each call: all of them where there are no more than that, else drawn. */
const statesPerCall = Number(process.env.TAGFERRY_CRASH_STATES ?? 12);

test(`up to ${statesPerCall} states at each call all open, with nothing acknowledged lost`, {
  timeout: 60_000 + statesPerCall * 5_000,
}, () => {
  const disk = new MemoryDisk();
  const run = emptyRun();
  const random = seeded(9);
  let states = 0;
  disk.fault = () => {
    // Looking at the disk is no call of the script's.
    const { fault } = disk;
    disk.fault = () => undefined;
    let choices = 0;
    disk.afterPowerCut(() => {
      choices++;
      return true;
    });
    check(disk.afterKill(), run);
    const count = choices < 12 ? Math.min(statesPerCall, 2 ** choices) : statesPerCall;
    const all = choices < 12 && 2 ** choices <= statesPerCall;
    for (let i = 0; i < count; i++) {
      let bit = 0;
      const survives = all ? () => ((i >> bit++) & 1) === 1 : () => random() < 0.5;
      check(disk.afterPowerCut(survives), run);
      states++;
    }
    disk.fault = fault;
    return undefined;
  };
  runScript(disk, run);

  expect(states).toBeGreaterThan(200);
});

function check(disk: MemoryDisk, { acknowledged, unsure, settled }: ReturnType<typeof emptyRun>): void {
  // Before its first open the folder may not be there yet, which is a new buffer.
  const { store } = openStore(disk, { at: 1_000, seed: 77 });
  const points = takeAll(store).map(keyOf);
  const there = new Set(points);
  expect([...acknowledged].filter((key) => !there.has(key) && !settled.has(key))).toEqual([]);
  expect(points.filter((key) => !acknowledged.has(key) && !unsure.has(key))).toEqual([]);
  expect(there.size).toBe(points.length);
  const { appendedPoints, settledPoints, unsettledPoints, losses } = store.stats();
  expect(losses).toEqual([]);
  expect(settledPoints + unsettledPoints).toBe(appendedPoints);
}
