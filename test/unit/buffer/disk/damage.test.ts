// Points whose bytes change on disk. Without the checksums, wrong values would be delivered.

import fc from "fast-check";
import { expect, test, vi } from "vitest";
import { crc32 } from "../../../../src/buffer/disk/files/bytes.ts";
import { append, folder, moment, openStore, type Triple, takeAll } from "../../../support/disk-store.ts";
import { MemoryDisk } from "../../../support/memory-disk.ts";
import { runs } from "../../../support/property.ts";

// Hundreds of short runs. The limit allows for a busy machine.
vi.setConfig({ testTimeout: 180_000 });

const t0 = 1_767_225_600_000_000;
const record = (i: number): Triple[] => [
  ["line.a", t0 + i * 1e6, i + 0.5],
  ["line.b", t0 + i * 1e6, i * 100],
  ["line.c", t0 + i * 1e6 + 7, 1 / (i + 3)],
];
const keyOf = ([input, time, value]: Triple) => `${input} ${time} ${value}`;

/** A disk with `records` records in one segment. The buffer is closed, or left as after a crash. */
function written(records: number, closed: boolean): { disk: MemoryDisk; path: string; used: number } {
  const disk = new MemoryDisk();
  const { store } = openStore(disk, { segmentBytes: 8_192 });
  for (let i = 0; i < records; i++) append(store, record(i));
  if (closed) store.close(moment(1));
  const name = disk.list(folder).find((entry) => entry.startsWith("seg-")) ?? "";
  const path = `${folder}/${name}`;
  return { disk, path, used: disk.content(path).findLastIndex((byte) => byte !== 0) + 1 };
}

/** Opens a copy with the bytes changed. Counts the points that are read, reported as lost, and wrong. */
function readDamaged(from: ReturnType<typeof written>, records: number, change: (bytes: Uint8Array) => Uint8Array) {
  const disk = from.disk.afterKill();
  disk.change(from.path, change);
  const { store } = openStore(disk);
  const points = takeAll(store);
  const expected = new Set(Array.from({ length: records }, (_, i) => record(i).map(keyOf)).flat());
  const stats = store.stats();
  return {
    read: points.length,
    wrong: points.filter((point) => !expected.has(keyOf(point))).length,
    reported: stats.losses.reduce((sum, loss) => sum + loss.points, 0),
    appended: stats.appendedPoints,
  };
}

const flip = (bit: number) => (bytes: Uint8Array) => {
  bytes[bit >> 3]! ^= 1 << (bit & 7);
  return bytes;
};

test.each([true, false])(
  "every flipped bit is noticed and costs one record at most, the loss is exact (sealed: %s)",
  (sealed) => {
    const records = 6;
    const from = written(records, sealed);
    const states = new Map<string, number>();
    const stride = process.env.TAGFERRY_LONG === undefined ? 29 : 1;
    for (let bit = 0; bit < from.used * 8; bit += bit > 600 && bit < 32_000 ? 97 * stride : stride) {
      const { read, wrong, reported, appended } = readDamaged(from, records, flip(bit));
      const isTail = !sealed && read + reported < appended;
      expect({ bit, wrong, explained: read + reported === appended || isTail }).toEqual({
        bit,
        wrong: 0,
        explained: true,
      });
      expect(read).toBeGreaterThanOrEqual(3 * (records - 1));
      states.set(`${read} ${reported}`, (states.get(`${read} ${reported}`) ?? 0) + 1);
    }
    // A flip in a file header or a name loses nothing. A flip in a record loses its three points.
    expect([...states.keys()].toSorted()).toEqual(sealed ? ["15 3", "18 0"] : expect.arrayContaining(["15 3", "18 0"]));
  },
);

test("a write cut off at any byte costs only its own points", () => {
  const before = written(3, false);
  const after = written(4, false);
  // Starts at a multiple of 8, because records are padded with zeros, which their checksum covers.
  for (let cut = Math.ceil(before.used / 8) * 8; cut <= after.used; cut++)
    for (const rest of [0, 0xa5]) {
      const { read, wrong, reported } = readDamaged(after, 4, (bytes) => {
        for (let i = cut; i < after.used + 40; i++) bytes[i] = rest === 0 || i % 3 === 0 ? 0 : rest;
        return bytes;
      });
      expect({ cut, wrong, reported }).toEqual({ cut, wrong: 0, reported: 0 });
      expect(read).toBeGreaterThanOrEqual(9);
    }
});

test("zeroed sectors, a truncated file and an empty file cost only the points that they held", () => {
  const records = 40;
  const from = written(records, true);
  for (let sector = 0; sector * 512 < from.used; sector++) {
    const { read, wrong, reported, appended } = readDamaged(from, records, (bytes) =>
      bytes.fill(0, sector * 512, sector * 512 + 512),
    );
    expect({ sector, wrong, lost: appended - read - reported }).toEqual({ sector, wrong: 0, lost: 0 });
    expect(read).toBeGreaterThanOrEqual(records * 3 - 21);
  }
  for (const length of [0, 100, 4_096, 5_000, from.used - 1]) {
    const { wrong } = readDamaged(from, records, (bytes) => bytes.slice(0, length));
    expect({ length, wrong }).toEqual({ length, wrong: 0 });
  }
});

test("a partly written record costs no earlier record and does not count as damage", () => {
  const disk = new MemoryDisk();
  const { store } = openStore(disk);
  append(store, record(1));
  disk.fault = (call) => (call === "sync" ? "ignore" : undefined);
  // Long names before and after the values. A record header lies in the second sector.
  append(
    store,
    Array.from({ length: 120 }, (_, i): Triple => [`${"long".repeat(25)}${i % 4}`, 1.7e15 + i * 1_000, Math.sqrt(i)]),
  );
  let sectors = 0;
  disk.afterPowerCut(() => sectors++ < 0);
  expect(sectors).toBeGreaterThan(3);
  for (let parts = 0; parts < 2 ** sectors - 1; parts++) {
    let sector = 0;

    const again = openStore(disk.afterPowerCut(() => ((parts >> sector++) & 1) === 1));

    const read = takeAll(again.store);
    expect(read.slice(0, 3).map(keyOf).toSorted()).toEqual(record(1).map(keyOf).toSorted());
    expect([3, 123]).toContain(read.length);
    expect(again.store.stats()).toMatchObject({ losses: [], appendedPoints: read.length });
  }
});

test("stale bytes of reused disk blocks are never decoded as records", () => {
  const old = written(6, false);
  const disk = new MemoryDisk();
  const { store } = openStore(disk, { segmentBytes: 8_192, seed: 2 });
  append(store, record(100));
  const path = `${folder}/${disk.list(folder).find((entry) => entry.startsWith("seg-"))}`;
  const stale = old.disk.content(old.path);
  disk.change(path, (bytes) => {
    const end = bytes.findLastIndex((byte) => byte !== 0) + 1;
    bytes.set(stale.subarray(Math.ceil(end / 8) * 8, 8_192), Math.ceil(end / 8) * 8);
    return bytes;
  });

  const again = openStore(disk.afterKill());

  expect(takeAll(again.store).map(keyOf).toSorted()).toEqual(record(100).map(keyOf).toSorted());
});

test("with the same salt in every segment stale bytes would be decoded as records", () => {
  const old = written(6, false);
  const { disk, path } = written(1, false);
  const stale = old.disk.content(old.path);
  disk.change(path, (bytes) => {
    const end = Math.ceil((bytes.findLastIndex((byte) => byte !== 0) + 1) / 8) * 8;
    bytes.set(stale.subarray(end), end);
    return bytes;
  });

  expect(takeAll(openStore(disk.afterKill()).store).length).toBeGreaterThan(3);
});

const statesOf = (disk: MemoryDisk) =>
  disk
    .list(folder)
    .filter((name) => name.startsWith("state-"))
    .map((name) => `${folder}/${name}`);

test.each<[string, (disk: MemoryDisk, path: string) => void]>([
  [
    "damaged",
    (disk, path) =>
      disk.change(path, (bytes) => {
        // The byte after the file header and the buffer's UUID: how often the buffer was opened.
        bytes[65]! ^= 1;
        return bytes;
      }),
  ],
  ["deleted", (disk, path) => disk.remove(path)],
])("all states %s: all points are delivered again, and the counters report that they start again", (_, spoil) => {
  const { disk } = written(5, true);
  for (const path of statesOf(disk)) spoil(disk, path);

  const { store, notes } = openStore(disk.afterKill());

  expect(takeAll(store)).toHaveLength(15);
  expect(notes.some(({ message }) => message.includes("counts start at zero"))).toBe(true);
});

test("a damaged FORMAT is not mistaken for a later version", () => {
  const { disk } = written(5, true);
  disk.change(`${folder}/FORMAT`, (bytes) => {
    // The format version after "tagferry buffer ".
    bytes[16] = 0x39;
    return bytes;
  });

  const open = () => openStore(disk.afterKill());

  expect(open).not.toThrow();
  expect(takeAll(open().store)).toHaveLength(15);
});

test("a damaged FORMAT does not make segments foreign", () => {
  const { disk } = written(5, true);
  disk.change(`${folder}/FORMAT`, (bytes) => {
    bytes[30] = bytes[30] === 0x61 ? 0x62 : 0x61;
    return bytes;
  });

  const { store, notes } = openStore(disk.afterKill());

  expect(takeAll(store)).toHaveLength(15);
  expect(notes.map(({ message }) => message)).toEqual(["FORMAT was rebuilt from the segments"]);
});

test.for<[string, (payload: Uint8Array) => void]>([
  ["cannot be decoded", (payload) => payload.fill(0xff)],
  // The first byte is the number of groups of series: one of two is left.
  ["has other points than its header says", (payload) => payload.fill(1, 0, 1)],
])("a record with a valid checksum that %s costs only itself", ([, change]) => {
  const from = written(5, true);
  const [, second = 0] = offsetsOfPoints(from.disk.content(from.path));
  const result = readDamaged(from, 5, (bytes) => {
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    const length = view.getUint32(second + 8, true);
    change(bytes.subarray(second + 56, second + 56 + length));
    const end = second + 56 + Math.ceil(length / 8) * 8;
    view.setUint32(second + 44, crc32(bytes, second + 56, end), true);
    view.setUint32(second + 52, crc32(bytes, second, second + 52), true);
    return bytes;
  });

  expect(result).toEqual({ read: 12, wrong: 0, reported: 3, appended: 15 });
});

/** The offsets of the records that hold points. */
function offsetsOfPoints(bytes: Uint8Array): number[] {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const offsets: number[] = [];
  for (let at = 4_096; at + 56 <= bytes.length; at += 8)
    if (view.getUint32(at, true) === 0x1a524654 && bytes[at + 4] === 1) offsets.push(at);
  return offsets;
}

test("whatever bytes of a segment change, the buffer opens and returns no value that was not appended", () => {
  const records = 8;
  const from = written(records, true);
  const size = from.disk.content(from.path).length;
  const place = fc.nat(size);
  const change = fc.oneof(
    fc.record({ kind: fc.constant("fill" as const), at: place, length: fc.nat(600), byte: fc.nat(255) }),
    fc.record({ kind: fc.constant("move" as const), at: place, length: fc.nat(600), to: place }),
    fc.record({ kind: fc.constant("cut" as const), at: place }),
    fc.record({ kind: fc.constant("grow" as const), bytes: fc.uint8Array({ maxLength: 300 }) }),
  );
  fc.assert(
    fc.property(fc.array(change, { minLength: 1, maxLength: 5 }), (changes) => {
      const { wrong } = readDamaged(from, records, (original) => {
        let bytes = original;
        for (const each of changes)
          if (each.kind === "fill") bytes.fill(each.byte, each.at, each.at + each.length);
          else if (each.kind === "move") bytes.copyWithin(each.to, each.at, each.at + each.length);
          else if (each.kind === "cut") bytes = bytes.slice(0, each.at);
          else bytes = Uint8Array.from([...bytes, ...each.bytes]);
        return bytes;
      });
      expect(wrong).toBe(0);
    }),
    runs(250),
  );
});
