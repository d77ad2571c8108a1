// The log on a real volume that is read-only or becomes so, as ext4 does after an error. Needs root for a loop device.
import { execFileSync } from "node:child_process";
import { mkdirSync } from "node:fs";
import { expect, test } from "vitest";
import { openDiskBuffer } from "../../src/buffer/disk/disk-buffer.ts";
import { nodeDisk } from "../../src/buffer/disk/files/disk.ts";
import { lockFolder } from "../../src/buffer/disk/files/lock.ts";
import { bufferOptions } from "../../src/buffer/disk/options.ts";
import { epochMicros, type InputId } from "../../src/core/point.ts";
import { append, inProcess, moment, openStore, settle, type Triple, take, takeAll } from "../support/disk-store.ts";
import { eventually } from "../support/eventually.ts";
import { canCutPower, loopVolume } from "../support/loop-volume.ts";
import { ManualClock, testRuntime } from "../support/runtime.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const points = (from: number): Triple[] =>
  Array.from({ length: 100 }, (_, i): Triple => ["a", 1.7e15 + (from + i) * 1_000, from + i]);

test.skipIf(!canCutPower)(
  "a volume that becomes read-only still gives its points, acknowledges none, and is used again once it is mounted again",
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

test.skipIf(!canCutPower)(
  "of two buffers that were opened on a read-only volume one alone writes once it can be written",
  { timeout: 120_000 },
  async () => {
    using volume = loopVolume("ext4");
    const never = new AbortController().signal;
    const config = bufferOptions.parse({ reserveFreeDisk: "0" });
    const open = () =>
      openDiskBuffer({ directory: `${volume.path}/data`, integration: "plant", config }, testRuntime(), never);
    const point = (second: number) => ({
      input: "a" as InputId,
      time: epochMicros(1.7e15 + second * 1e6),
      value: second,
    });
    const earlier = await open();
    await earlier.append([point(0)], { awaited: true }, never);
    await earlier[Symbol.asyncDispose]();
    execFileSync("mount", ["-o", "remount,ro", volume.path]);

    await using first = await open();
    await using second = await open();
    const both = [first, second];
    for (const buffer of both)
      await expect(buffer.append([point(1)], { awaited: true }, never)).rejects.toMatchObject({
        code: "BUFFER_UNAVAILABLE",
      });
    execFileSync("mount", ["-o", "remount,rw", volume.path]);
    const degraded = () => both.map((buffer) => buffer.stats().degraded);
    await eventually(() => degraded().includes(undefined) && degraded().some((why) => why?.includes("in use")));

    for (let i = 3; i < 10; i++) {
      const appends = await Promise.allSettled(
        both.map((buffer, k) => buffer.append([point(i * 2 + k)], { awaited: true }, never)),
      );
      expect(appends.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
    }
  },
);

test.skipIf(!canCutPower)("points of an unmounted read-only volume are not counted as lost", async () => {
  using home = temporaryFolder();
  const at = home.file("volume");
  mkdirSync(at);
  mkdirSync(`${at}/buffer`); // the mount point contains this folder as well, empty
  const mount = (...args: readonly string[]) => execFileSync("mount", args);
  mount("-t", "tmpfs", "tmpfs", at);
  let mounted = true;
  try {
    const clock = new ManualClock();
    const open = () =>
      openDiskBuffer(
        {
          directory: `${at}/buffer`,
          integration: "plant",
          config: bufferOptions.parse({ reserveFreeDisk: "0" }),
          segmentBytes: 65_536,
        },
        testRuntime({ clock }),
        new AbortController().signal,
        inProcess(nodeDisk(), undefined, lockFolder),
      );
    {
      await using buffer = await open();
      const stored = buffer.append(
        [{ input: "a" as InputId, time: epochMicros(1.7e15), value: 1 }],
        { awaited: true },
        new AbortController().signal,
      );
      await clock.advance(6);
      await stored;
    }
    mount("-o", "remount,ro", at);
    await using buffer = await open();
    await clock.advance(4_000);
    expect(buffer.stats()).toMatchObject({ unsettledPoints: 1, losses: [] });
    execFileSync("umount", ["-l", at]);
    mounted = false;
    await clock.advance(4_000);
    expect(buffer.stats()).toMatchObject({ unsettledPoints: 1, losses: [] });
  } finally {
    if (mounted) execFileSync("umount", ["-l", at]);
  }
});
