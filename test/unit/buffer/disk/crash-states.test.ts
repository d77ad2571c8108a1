// The power fails before every call to the disk; of what was not synced, every combination of blocks, sizes and names may
// have reached it. Each state is opened and must hold what was acknowledged.
import { expect, test } from "vitest";
import { openStore, takeAll } from "../../../support/disk-store.ts";
import { MemoryDisk } from "../../../support/memory-disk.ts";
import { seeded } from "../../../support/runtime.ts";
import { emptyRun, keyOf, runScript } from "../../../support/storage-script.ts";

/** States for each call: all of them where there are no more than that, else drawn. */
const statesPerCall = Number(process.env.TAGFERRY_CRASH_STATES ?? 12);
/** With 1,500 states and 6 variants some 120,000 states are looked at. */
const variants = Number(process.env.TAGFERRY_CRASH_VARIANTS ?? 1);

test.each(Array.from({ length: variants }, (_, variant) => variant))(
  `up to ${statesPerCall} states at each call all open, with nothing acknowledged lost (variant %i)`,
  { timeout: 60_000 + statesPerCall * 200 },
  (variant) => {
    const disk = new MemoryDisk();
    const run = emptyRun();
    const random = seeded(variant);
    let states = 0;
    disk.fault = () => {
      // Looking at the disk is no call of the script's.
      const { fault } = disk;
      disk.fault = () => undefined;
      states += look(disk, run, random);
      disk.fault = fault;
      return undefined;
    };
    runScript(disk, run, variant);

    expect(states).toBeGreaterThan(300);
  },
);

function look(disk: MemoryDisk, run: ReturnType<typeof emptyRun>, random: () => number): number {
  let choices = 0;
  disk.afterPowerCut(() => {
    choices++;
    return true;
  });
  const all = choices < 12 && 2 ** choices <= statesPerCall;
  const count = all ? 2 ** choices : statesPerCall;
  for (let i = 0; i < count; i++) {
    let bit = 0;
    check(disk.afterPowerCut(all ? () => ((i >> bit++) & 1) === 1 : () => random() < 0.5), run);
  }
  check(disk.afterKill(), run);
  return count + 1;
}

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
