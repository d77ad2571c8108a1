// The log on real file systems that lose power while it appends.
import { once } from "node:events";
import { expect, test } from "vitest";
import { type Disk, nodeDisk } from "../../src/buffer/disk/files/disk.ts";
import { openSegmentStore, type Store } from "../../src/buffer/disk/log/store.ts";
import { group, moment, settle, type TakenBlock, type Triple, take } from "../support/disk-store.ts";
import { canCutPower, type FileSystem, type LoopVolume, loopVolume } from "../support/loop-volume.ts";
import { seeded } from "../support/runtime.ts";

const cycles = Number(process.env.TAGFERRY_POWER_CYCLES ?? 1_000);
const keyOf = ([input, time, value]: Triple) => `${input} ${time} ${value}`;

/**
 * Runs cycles of appending, compaction, power cut and restart. Returns how many acknowledged points there were and how
 * many of them were lost.
 */
async function cut(volume: LoopVolume, disk: Disk, count: number, enough: (lost: number) => boolean = () => false) {
  const random = seeded(21);
  const folder = `${volume.path}/data/buffer`;
  let [lost, total, next, compacted] = [0, 0, 0, 0];
  /** Points that were acknowledged and are not settled yet. */
  const unsettled = new Set<string>();
  for (let cycle = 0; cycle <= count && !enough(lost); cycle++) {
    const at = cycle * 100;
    disk.makeFolder(folder);
    const store = open(disk, folder, random, at);
    const there = new Set<string>();
    const blocks: TakenBlock[] = [];
    for (let block = take(store); block; block = take(store)) {
      blocks.push(block);
      for (const point of block.points) there.add(keyOf(point));
    }
    for (const key of unsettled) if (!there.has(key)) lost++;
    const { losses } = store.stats();
    if (losses.length > 0) {
      store.close(moment(at + 1));
      return { lost: lost + losses.reduce((sum, { points }) => sum + points, 0), total, compacted };
    }
    // About a quarter of the backlog stays, so that there is something to compact.
    for (const block of blocks)
      if (random() < 0.75) {
        settle(store, block);
        for (const point of block.points) unsettled.delete(keyOf(point));
      } else store.release([block.id]);
    store.tick(moment(at + 10));
    if (cycle === count) break;

    const cutting = volume.cutSoon(random() * 30);
    const cutDone = once(cutting, "close");
    try {
      for (let i = 0; ; i++) {
        if (store.work(moment(at + 70))) compacted++;
        const points = Array.from({ length: 1 + Math.floor(random() * 60) }, (): Triple => {
          next++;
          return [`tag${next % 7}`, 1.7e15 + next * 1_000, next / 8];
        });
        store.append(group(store, points), moment(at + 11));
        // A real power cut also stops the program. Here, a sync that was under way may still report success: jbd2
        // treats an aborted transaction like a written one. Only an append that returned before the cut counts as
        // acknowledged.
        volume.throwIfCut();
        for (const point of points) unsettled.add(keyOf(point));
        total += points.length;
        if (i % 50 === 49) store.tick(moment(at + 12 + i / 5));
      }
    } catch {
      // The power is off. Closing the store releases what the process still has open.
      store.close(moment(at + 99));
    }
    await cutDone;
    volume.restart();
  }
  return { lost, total, compacted };
}

function open(disk: Disk, folder: string, random: () => number, at: number): Store {
  const limits = {
    maxSize: 2 ** 28,
    maxAgeMs: 1e12,
    reserveFreeDisk: 0,
    whenFull: "block",
    segmentBytes: 65_536,
  } as const;
  const random32 = () => Math.floor(random() * 2 ** 32);
  const environment = { disk, random32, note() {} };
  return openSegmentStore({ folder, integration: "plant", ...limits }, environment, moment(at));
}

for (const type of ["ext4", "xfs"] satisfies FileSystem[]) {
  test.skipIf(!canCutPower)(
    `${cycles} power cuts on ${type} lose nothing that was acknowledged`,
    // A cycle took 0.5 s on ext4, and more than 1 s on xfs while 30 other processes shared the two cores.
    { timeout: 60_000 + cycles * 5_000 },
    async () => {
      using volume = loopVolume(type);

      const { lost, total, compacted } = await cut(volume, nodeDisk(), cycles);

      expect(total).toBeGreaterThan(cycles);
      expect(compacted).toBeGreaterThan(0);
      expect(lost).toBe(0);
    },
  );

  test.skipIf(!canCutPower)(
    `without fdatasync power cuts on ${type} do lose points`,
    { timeout: 120_000 },
    async () => {
      using volume = loopVolume(type);
      const disk = nodeDisk();
      const withoutSync: Disk = {
        ...disk,
        open: (path, mode) => ({ ...disk.open(path, mode), sync() {} }),
      };

      const { lost } = await cut(volume, withoutSync, 60, (count) => count > 0);

      expect(lost).toBeGreaterThan(0);
    },
  );
}
