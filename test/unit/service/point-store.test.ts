import { DatabaseSync } from "node:sqlite";
import fc from "fast-check";
import { expect, test } from "vitest";
import type { BlockColumns } from "../../../src/service/store/point-block.ts";
import { decodePoints, encodeBlock, mergeColumns } from "../../../src/service/store/point-block.ts";
import { PointStore, pointTables } from "../../../src/service/store/point-store.ts";
import { runs } from "../../support/property.ts";

function memoryStore() {
  const db = new DatabaseSync(":memory:");
  db.exec(pointTables);
  return { db, store: new PointStore(db) };
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

test("a block is read back bit for bit, whatever its times", () => {
  const steps = fc.oneof(
    fc.constant(1_000_000),
    fc.integer({ min: 1, max: 5_000_000 }),
    fc.integer({ min: 1, max: 2 ** 45 }),
    fc.constant(2 ** 40),
  );
  fc.assert(
    fc.property(
      fc.integer({ min: -(2 ** 50), max: 2 ** 50 }),
      fc.array(fc.tuple(steps, value), { minLength: 1, maxLength: 40 }),
      fc.boolean(),
      (first, points, even) => {
        let time = first;
        const times = Float64Array.from(points, ([step]) => (time += even ? points[0]![0] : step));
        const block = { times, values: Float64Array.from(points, ([, v]) => v) };
        expect(decodePoints(encodeBlock(block))).toEqual(block);
        // SQLite hands out views at any offset.
        const bytes = encodeBlock(block);
        const shifted = new Uint8Array(bytes.length + 3);
        shifted.set(bytes, 3);
        expect(decodePoints(shifted.subarray(3))).toEqual(block);
      },
    ),
    runs(300),
  );
});

test("an even grid costs 8 bytes a point, an uneven one 12", () => {
  const times = Float64Array.from({ length: 1_024 }, (_, i) => i * 60e6);
  const values = new Float64Array(1_024);
  expect(encodeBlock({ times, values }).length).toBe(24 + 1_024 * 8);
  times[7]! += 1;
  expect(encodeBlock({ times, values }).length).toBeLessThanOrEqual(24 + 1_024 * 12);
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

test("of points that share a time the later write wins", () => {
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

test("whatever is written in whatever order, a scan is what a map would hold", () => {
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
        for (const [signal, points] of writes) {
          store.write(signal, columns(new Map(points)));
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

test("blocks that are older than the retention go", () => {
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
