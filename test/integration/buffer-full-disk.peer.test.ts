// The log on a real volume that other programs fill. Needs root for its own tmpfs.
import { execFileSync } from "node:child_process";
import { closeSync, mkdirSync, openSync, readdirSync, rmSync, statSync, truncateSync, writeSync } from "node:fs";
import { expect, test } from "vitest";
import { openDiskBuffer } from "../../src/buffer/disk/disk-buffer.ts";
import { nodeDisk } from "../../src/buffer/disk/files/disk.ts";
import { bufferOptions } from "../../src/buffer/disk/options.ts";
import { openKeptTail } from "../../src/buffer/jetstream/kept-tail.ts";
import { encodeFrame } from "../../src/buffer/jetstream/stream-frame.ts";
import { Block, type BlockId } from "../../src/core/block.ts";
import { epochMicros, type InputId } from "../../src/core/point.ts";
import { systemClock } from "../../src/lib/time/clock.ts";
import { append, moment, openStore, type Triple, takeAll } from "../support/disk-store.ts";
import { testRuntime } from "../support/runtime.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const isRoot = process.getuid?.() === 0;
const unavailable = expect.objectContaining({ code: "BUFFER_UNAVAILABLE" });
/** Irrational values, which take 8 bytes each. */
const values = (next: number): Triple[] =>
  Array.from({ length: 1_000 }, (_, i): Triple => ["a", 1.7e15 + (next + i) * 1_000, Math.sqrt(next + i)]);

function tmpfs(megabytes: number) {
  const home = temporaryFolder();
  const path = home.file("volume");
  mkdirSync(path);
  execFileSync("mount", ["-t", "tmpfs", "-o", `size=${megabytes}m`, "tmpfs", path]);
  return {
    path,
    [Symbol.dispose]() {
      // A lazy unmount, because a failed test may have left files open.
      execFileSync("umount", ["-l", path]);
      home[Symbol.dispose]();
    },
  };
}

/** Fills the volume with a file of another program. */
function fill(path: string): void {
  const file = openSync(path, "a");
  try {
    for (const size of [2 ** 16, 4_096]) {
      const bytes = new Uint8Array(size).fill(1);
      try {
        while (writeSync(file, bytes) > 0);
      } catch (error) {
        expect(error).toHaveProperty("code", "ENOSPC");
      }
    }
  } finally {
    closeSync(file);
  }
}

test.skipIf(!isRoot)(
  "a volume that others fill costs nothing for a minute and one segment after it; then it heals",
  () => {
    using volume = tmpfs(20);
    const folder = `${volume.path}/data`;
    const { store } = openStore(nodeDisk(), { folder, segmentBytes: 2 ** 18 });
    let next = 0;
    const appendAt = (seconds: number) => {
      append(store, values(next), seconds);
      next += 1_000;
    };
    for (let i = 0; i < 200; i++) appendAt(0);
    const others = `${volume.path}/others`;
    fill(others);

    const failing = (seconds: number) => {
      expect(() => {
        for (let i = 0; i < 100; i++) appendAt(seconds);
      }).toThrow(unavailable);
      store.tick(moment(seconds + 1));
    };
    for (let at = 1; at < 60; at += 7) failing(at);
    expect(store.stats().losses).toEqual([]);
    expect(store.stats().degraded).toContain("ENOSPC");

    appendAt(70);
    const { losses } = store.stats();
    expect(losses).toMatchObject([{ reason: "diskFull" }]);
    expect(losses[0]?.points).toBeLessThan(40_000);
    fill(others);
    for (let at = 71; at < 300; at += 10) failing(at);
    expect(store.stats().losses).toEqual(losses);

    rmSync(others);
    store.tick(moment(302));
    expect(store.stats().degraded).toBeUndefined();
    appendAt(303);
    expect(takeAll(store)).toHaveLength(next - (losses[0]?.points ?? 0));
    store.close(moment(304));
  },
);

test.skipIf(!isRoot)(
  "a start on a volume without a byte left delivers what is there, and takes points with room",
  async () => {
    using volume = tmpfs(12);
    const never = new AbortController().signal;
    const config = bufferOptions.parse({ reserveFreeDisk: "0" });
    const open = () =>
      openDiskBuffer({ directory: `${volume.path}/data`, integration: "plant", config }, testRuntime(), never);
    const point = (time: number) => ({ input: "a" as InputId, time: epochMicros(1.7e15 + time), value: time });
    {
      await using buffer = await open();
      await buffer.append([point(1)], { awaited: true }, never);
    }
    const others = `${volume.path}/others`;
    fill(others);
    await using buffer = await open();
    await expect(buffer.append([point(2)], { awaited: true }, never)).rejects.toEqual(unavailable);
    await using reader = await buffer.reader();
    const block = await reader.take("backlog", { wait: false, maxPoints: 10 }, never);
    expect(block?.series.map(({ values: [value] }) => value)).toEqual([1]);
    rmSync(others);
    await buffer.append([point(2)], { awaited: true }, never);
  },
);

test.skipIf(!isRoot)(
  "a published frame is kept once a full volume has room for it, however often it had less",
  async () => {
    using volume = tmpfs(4);
    const directory = `${volume.path}/forwarded`;
    const keep = { directory, keepMs: 600_000, keepBytes: 2 ** 30, unreadable: () => {} };
    await using tail = await openKeptTail(keep, systemClock());
    const count = 60_000;
    const times = Float64Array.from({ length: count }, (_, i) => i);
    const block = Block.of(1 as BlockId, [{ input: "a" as InputId, times, values: times.map(Math.sqrt) }]);
    const header = { node: "gw1", epoch: "e", number: 0, before: 0, dictionary: "d", late: false, latest: count };
    const frame = encodeFrame(header, block, [0], [0]);
    const others = `${volume.path}/others`;
    fill(others);
    const addWith = async (room: number) => {
      truncateSync(others, statSync(others).size - room);
      await tail.add(1, "stream", frame);
    };
    const part = Math.floor(frame.length / 3);
    for (let i = 0; i < 3; i++) await expect(addWith(part)).rejects.toThrow(/ENOSPC|took a part/);

    await addWith(part);

    expect(tail.frames).toHaveLength(1);
    expect(readdirSync(directory)).toHaveLength(1);
  },
);
