import { readFileSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import fc from "fast-check";
import { expect, test } from "vitest";
import { type BlockColumns, decodePoints, encodeBlock } from "../../../src/service/store/block-format.ts";
import { mergeColumns, RunEncoder } from "../../../src/service/store/point-run.ts";
import { type PointStore, pointStore, pointTables } from "../../../src/service/store/point-store.ts";
import { ServiceStore } from "../../../src/service/store/store.ts";
import { runs } from "../../support/property.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";

function memoryStore() {
  const db = new DatabaseSync(":memory:");
  db.exec(pointTables);
  return { db, store: pointStore(db) };
}

function columns(points: ReadonlyMap<number, number>): BlockColumns {
  const sorted = [...points].toSorted(([a], [b]) => a - b);
  return {
    times: Float64Array.from(sorted, ([time]) => time),
    values: Float64Array.from(sorted, ([, value]) => value),
  };
}

function readAll(store: PointStore, signal: number, from = -Infinity, before = Infinity): [number, number][] {
  const points: [number, number][] = [];
  for (const { times, values } of store.scan(signal, from, before))
    for (const [i, time] of times.entries()) points.push([time, values[i]!]);
  return points;
}

const value = fc.double({ noNaN: true, noDefaultInfinity: true });
/** Typical values of devices, and limits of integer types. */
const likelyValues = fc.oneof(
  fc.constant(fc.constantFrom(7, -0, 0, 2 ** 50, -(2 ** 50), 2 ** 53, 0.1, 1e-9, 1e22)),
  fc.constant(fc.float({ noNaN: true, noDefaultInfinity: true })),
  fc
    .tuple(fc.integer({ min: 0, max: 9 }), fc.constantFrom(200, 2 ** 16, 2 ** 33))
    .map(([decimals, span]) => fc.integer({ min: -span, max: span }).map((integer) => integer / 10 ** decimals)),
  fc.constant(value),
);

const steps = fc.oneof(
  fc.constant(1_000_000),
  fc.integer({ min: 900, max: 1_100 }).map((ms) => ms * 1_000),
  fc.integer({ min: 1, max: 5_000_000 }),
  fc.integer({ min: 1, max: 2 ** 45 }),
  fc.constant(2 ** 40),
);

test("a block is read back bit for bit, whatever its times and values", () => {
  const points = likelyValues.chain((values) => fc.array(fc.tuple(steps, values), { minLength: 1, maxLength: 40 }));
  fc.assert(
    fc.property(
      fc.integer({ min: -(2 ** 50), max: 2 ** 50 }),
      fc.oneof(points, fc.array(fc.tuple(steps, value), { minLength: 1, maxLength: 40 })),
      fc.boolean(),
      (first, pairs, even) => {
        let time = first;
        const times = Float64Array.from(pairs, ([step]) => (time += even ? pairs[0]![0] : step));
        const block = { times, values: Float64Array.from(pairs, ([, v]) => v) };
        expect(decodePoints(encodeBlock(block))).toEqual(block);
        // SQLite returns views at any offset.
        const bytes = encodeBlock(block);
        const shifted = new Uint8Array(bytes.length + 3);
        shifted.set(bytes, 3);
        expect(decodePoints(shifted.subarray(3))).toEqual(block);
      },
    ),
    runs(300),
  );
});

test("points at the limits of time are read back with their times", () => {
  const { store } = memoryStore();
  const points = [Number.MIN_SAFE_INTEGER, Number.MIN_SAFE_INTEGER + 1, Number.MAX_SAFE_INTEGER - 4];
  const written = points.map((time, i): [number, number] => [time, i]);
  store.write(1, columns(new Map(written)));
  expect(readAll(store, 1)).toEqual(written);
  for (const point of written.toReversed()) store.write(1, columns(new Map([point])));
  expect(readAll(store, 1)).toEqual(written);
});

test.each([
  ["BUFFER_OLDER", 2],
  ["BUFFER_NEWER", 4],
])("a file of another layout is refused with %s and stays as it is", (code, version) => {
  using folder = temporaryFolder();
  ServiceStore.open(folder.path)[Symbol.dispose]();
  const file = folder.file("service.sqlite");
  const db = new DatabaseSync(file);
  db.exec(`PRAGMA user_version = ${version}`);
  db.close();
  const before = readFileSync(file);
  expect(() => ServiceStore.open(folder.path)).toThrow(expect.objectContaining({ code }));
  expect(readFileSync(file)).toEqual(before);
});

const evenTimes = Float64Array.from({ length: 1_024 }, (_, i) => i * 60e6);
const jitteredTimes = evenTimes.map((time, i) => time + ((i * 37) % 200) * 1_000);
const columnOf = (valueAt: (i: number) => number) => Float64Array.from({ length: 1_024 }, (_, i) => valueAt(i));

test.each([
  ["a value that stands still", evenTimes, columnOf(() => 21.5), 0],
  ["a temperature with a decimal", evenTimes, columnOf((i) => Math.round(Math.sin(i / 50) * 200) / 10), 4],
  [
    "a temperature with times that waver by milliseconds",
    jitteredTimes,
    columnOf((i) => Math.round(Math.sin(i / 50) * 200) / 10),
    4 + 8,
  ],
  ["a counter", evenTimes, columnOf((i) => 1e9 + i * 17), 0],
  ["noise of 1,000 steps", evenTimes, columnOf((i) => ((i * 377) % 999) / 10), 10],
  ["floats of a device", evenTimes, columnOf((i) => Math.fround(Math.sin(i))), 32],
  ["doubles", evenTimes, columnOf(Math.sin), 64],
])("a block of %s takes so many bits a point", (_what, times, values, bits) => {
  const encoded = encodeBlock({ times, values });
  expect(decodePoints(encoded)).toEqual({ times, values });
  expect(encoded.length).toBeLessThanOrEqual(48 + (1_024 * bits) / 8);
});

test("a scan backwards gives the same blocks, the last one first", () => {
  const { store } = memoryStore();
  for (let run = 0; run < 5; run++)
    store.write(1, {
      times: Float64Array.from({ length: 900 }, (_, i) => run * 900 + i),
      values: new Float64Array(900),
    });
  const forwards = [...store.scan(1, 100, 4_000)];
  expect(forwards.length).toBeGreaterThan(3);
  expect([...store.scan(1, 100, 4_000, true)]).toEqual(forwards.toReversed());
});

test("of points with the same time the later write wins", () => {
  const merged = mergeColumns(
    columns(
      new Map([
        [1, 1],
        [2, 2],
      ]),
    ),
    columns(
      new Map([
        [2, 20],
        [3, 30],
      ]),
    ),
  );
  expect(merged).toEqual(
    columns(
      new Map([
        [1, 1],
        [2, 20],
        [3, 30],
      ]),
    ),
  );
});

test("after any writes in any order a scan equals a map", () => {
  const run = fc.uniqueArray(fc.tuple(fc.integer({ min: 0, max: 3_000 }), value), {
    selector: ([time]) => time,
    minLength: 1,
    maxLength: 60,
  });
  const wide = fc
    .record({
      from: fc.nat(3_000),
      length: fc.integer({ min: 1, max: 2_500 }),
      step: fc.integer({ min: 1, max: 3 }),
      v: value,
    })
    .map(({ from, length, step, v }): [number, number][] => Array.from({ length }, (_, i) => [from + i * step, v + i]));
  fc.assert(
    fc.property(
      fc.array(fc.tuple(fc.integer({ min: 1, max: 2 }), fc.oneof({ weight: 4, arbitrary: run }, wide)), {
        maxLength: 25,
      }),
      fc.nat(4_000),
      fc.nat(4_000),
      (writes, from, length) => {
        const { db, store } = memoryStore();
        const model = new Map([1, 2].map((signal) => [signal, new Map<number, number>()]));
        for (const [i, [signal, points]] of writes.entries()) {
          const run = columns(new Map(points));
          store.write(signal, i % 2 === 0 ? run : new RunEncoder().encode(run));
          for (const [time, v] of points) model.get(signal)?.set(time, v);
        }
        for (const [signal, points] of model) {
          const sorted = [...points].toSorted(([a], [b]) => a - b);
          expect(readAll(store, signal)).toEqual(sorted);
          const inside = sorted.filter(([time]) => time >= from && time < from + length);
          expect(readAll(store, signal, from, from + length)).toEqual(inside);
        }
        const overlaps = db
          .prepare(
            "SELECT a.number FROM block a JOIN block b ON a.signal = b.signal AND a.first < b.first AND a.last >= b.first",
          )
          .all();
        expect(overlaps).toEqual([]);
        db.close();
      },
    ),
    runs(70),
  );
});

test.each([
  ["ascending", (i: number) => i],
  ["descending", (i: number) => 5_000 - i],
])("single points written in %s order gather in few blocks", (_order, timeOf) => {
  const { db, store } = memoryStore();
  db.exec("BEGIN");
  for (let i = 0; i < 5_000; i++) store.write(1, columns(new Map([[timeOf(i), i]])));
  db.exec("COMMIT");
  const blocks = Number(db.prepare("SELECT count(*) AS n FROM block").get()?.["n"]);
  expect(blocks).toBeLessThan(25);
  expect(readAll(store, 1).length).toBe(5_000);
});

test.each([
  ["noise of 1,000 steps", 2, (i: number) => ((i * 377) % 999) / 10],
  ["floats of a device", 4, (i: number) => Math.fround(Math.sin(i))],
  ["doubles", 8, Math.sin],
])("full blocks of %s fill the pages of the file", (_what, bytes, valueAt) => {
  using folder = temporaryFolder();
  const count = 400_000;
  const times = Float64Array.from({ length: count }, (_, i) => i * 1e6);
  using store = ServiceStore.open(folder.path);
  store.transaction(() => store.points.write(1, { times, values: Float64Array.from(times, (__, i) => valueAt(i)) }));
  const db = new DatabaseSync(folder.file("service.sqlite"), { readOnly: true });
  const pages = Number(db.prepare("PRAGMA page_count").get()?.["page_count"]);
  db.close();
  expect(pages * 8_192).toBeLessThan(count * bytes * 1.08 + 20 * 8_192);
});

test("a large insert rewrites no block that it does not overlap, and small inserts fill up partial blocks", () => {
  const { db, store } = memoryStore();
  const run = (from: number, count: number) =>
    columns(new Map(Array.from({ length: count }, (_, i): [number, number] => [from + i, from + i])));
  const written = () => Number(db.prepare("SELECT total_changes() AS n").get()?.["n"]);

  store.write(1, run(0, 300));
  store.write(1, run(300, 300));
  store.write(1, run(600, 300));

  expect(written()).toBe(3);
  // Overlaps the first two.
  store.write(1, run(200, 400));
  expect(readAll(store, 1)).toHaveLength(900);
  for (let i = 900; i < 2_000; i++) store.write(1, run(i, 1));
  expect(Number(db.prepare("SELECT count(*) AS n FROM block").get()?.["n"])).toBeLessThan(10);
  expect(readAll(store, 1)).toEqual(Array.from({ length: 2_000 }, (_, i) => [i, i]));
});

test("after a rollback points are stored where they belong", () => {
  using folder = temporaryFolder();
  using store = ServiceStore.open(folder.path);
  const run = (from: number, count: number, value: number) =>
    columns(new Map(Array.from({ length: count }, (_, i): [number, number] => [from + i, value])));
  store.transaction(() => store.points.write(1, run(0, 300, 1)));
  const failed = () => {
    store.points.write(1, run(300, 300, 2));
    throw new Error("the disk is full");
  };
  expect(() => store.transaction(failed)).toThrow("the disk is full");

  store.transaction(() => store.points.write(1, run(400, 10, 3)));

  const values = readAll(store.points, 1).map(([, value]) => value);
  expect(values).toEqual([...Array.from({ length: 300 }, () => 1), ...Array.from({ length: 10 }, () => 3)]);
});

test("blocks older than the retention are deleted", () => {
  const { store } = memoryStore();
  store.write(
    1,
    columns(
      new Map([
        [1, 1],
        [2, 2],
      ]),
    ),
  );
  store.write(
    2,
    columns(
      new Map([
        [2, 1],
        [9, 2],
      ]),
    ),
  );
  expect(store.expire(5)).toBe(1);
  expect(readAll(store, 1)).toEqual([]);
  expect(readAll(store, 2)).toEqual([
    [2, 1],
    [9, 2],
  ]);
});
