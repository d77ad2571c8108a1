// The log on a real volume that becomes read-only under it, as ext4 does after an error. Needs root, for a loop device.
import { execFileSync } from "node:child_process";
import { expect, test } from "vitest";
import { nodeDisk } from "../../src/buffer/disk/node-disk.ts";
import { append, moment, openStore, settle, type Triple, take, takeAll } from "../support/disk-store.ts";
import { canCutPower, loopVolume } from "../support/loop-volume.ts";

const points = (from: number): Triple[] =>
  Array.from({ length: 100 }, (_, i): Triple => ["a", 1.7e15 + (from + i) * 1_000, from + i]);

test.skipIf(!canCutPower)(
  "a volume that becomes read-only still gives its points, acknowledges none, and is used again once it is mounted anew",
  { timeout: 60_000 },
  () => {
    using volume = loopVolume("ext4");
    const folder = `${volume.path}/data`;
    const { store } = openStore(nodeDisk(), { folder });
    for (let i = 0; i < 10; i++) append(store, points(i * 100));
    execFileSync("mount", ["-o", "remount,abort", volume.path]);

    const acknowledged: number[] = [];
    for (let i = 10; i < 20; i++)
      try {
        append(store, points(i * 100), i);
        acknowledged.push(i);
      } catch (error) {
        expect(error).toHaveProperty("code", "BUFFER_UNAVAILABLE");
      }
    expect(acknowledged).toEqual([]);
    store.tick(moment(20));
    expect(store.stats().degraded).toMatch(/EROFS|EIO/);
    const block = take(store, "backlog", 500)!;
    settle(store, block);
    expect(block.points).toHaveLength(500);

    volume.restart();
    store.tick(moment(30));
    append(store, points(1_000), 31);

    expect(store.stats()).toMatchObject({ degraded: undefined, appendedPoints: 1_100, settledPoints: 500, losses: [] });
    expect(takeAll(store)).toHaveLength(600);
    store.close(moment(32));
    const again = openStore(nodeDisk(), { folder, at: 40, seed: 5 });
    expect(takeAll(again.store)).toHaveLength(600);
    again.store.close(moment(41));
  },
);
