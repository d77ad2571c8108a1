import fc from "fast-check";
import { expect, test } from "vitest";
import { ByteReader, ByteWriter, crc32 } from "../../../../src/buffer/disk/files/bytes.ts";
import { readColumns, SeriesSorter, writeColumns } from "../../../../src/buffer/disk/format/columns.ts";
import { recordHeaderBytes, recordTypes, writeRecord } from "../../../../src/buffer/disk/format/record.ts";
import { runs } from "../../../support/property.ts";

interface Point {
  readonly series: number;
  readonly time: number;
  readonly value: number;
}

function roundTrip(points: readonly Point[]): { read: Point[]; bytes: number } {
  const ids = Uint32Array.from(points, (point) => point.series);
  const times = Float64Array.from(points, (point) => point.time);
  const values = Float64Array.from(points, (point) => point.value);
  const from = Math.min(...times);
  const out = new ByteWriter();
  writeColumns(out, new SeriesSorter().sort(ids, times, values, 0, points.length), from);
  const read: Point[] = [];
  readColumns(new ByteReader(out.written()), from, (series, at, found) =>
    read.push(...Array.from(at, (time, i) => ({ series, time, value: found[i]! }))),
  );
  return { read, bytes: out.length };
}

const decimals = fc
  .tuple(fc.integer({ min: -1e9, max: 1e9 }), fc.integer({ min: 0, max: 9 }))
  .map(([m, k]) => m / 10 ** k);
const anyValue = fc.oneof(
  fc.double(),
  decimals,
  fc.double().map(Math.fround),
  fc.constantFrom(0, -0, Number.MIN_VALUE, -Number.MAX_VALUE, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 53, 0.1 + 0.2),
);
const anyTime = fc.oneof(
  fc.integer({ min: 0, max: 4_000 }).map((n) => 1.7e15 + n * 250_000),
  fc.maxSafeInteger(),
  fc.integer({ min: -1e9, max: 1e9 }).map((n) => 1.7e15 + n),
);

test("appended points are returned bit for bit, by series and in the order of time", () => {
  const point = fc.record({ series: fc.nat(300), time: anyTime, value: anyValue });
  fc.assert(
    fc.property(fc.array(point, { minLength: 1, maxLength: 200 }), (points) => {
      const sorted = points.toSorted((a, b) => a.series - b.series || a.time - b.time);

      const { read } = roundTrip(points);

      expect(read.map(({ series, time }) => ({ series, time }))).toEqual(
        sorted.map(({ series, time }) => ({ series, time })),
      );
      expect(read.every(({ value }, i) => Object.is(value, sorted[i]?.value))).toBe(true);
    }),
    runs(300),
  );
});

test("times that begin with long steps and go on with short ones are returned", () => {
  // Changes of long steps take several bytes each. Those of short steps then exceed the first memory of the writer.
  let time = 1.7e15;
  const points = Array.from({ length: 4_000 }, (_, i) => {
    time += 1 + (i % 2) * (i < 200 ? 2 ** 40 : 1);
    return { series: 0, time, value: 0 };
  });

  expect(roundTrip(points).read).toEqual(points);
});

test("a thousand tags polled together take less than eight bytes a point, header included", () => {
  const points = Array.from({ length: 1_000 }, (_, series) => ({
    series,
    time: 1.7e15,
    value: Math.round(Math.sin(series) * 10 ** ((series % 3) + 3)) / 10 ** ((series % 3) + 1),
  }));

  const { bytes } = roundTrip(points);

  expect((bytes + recordHeaderBytes) / points.length).toBeLessThan(5);
});

test("invalid bytes are refused and never decoded as points", () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 64 }), (bytes) => {
      let points = 0;
      try {
        readColumns(new ByteReader(bytes), 0, (_, { length }) => (points += length));
      } catch (error) {
        expect(error).toBeInstanceOf(RangeError);
      }
      expect(points).toBeLessThan(5_000);
    }),
    runs(500),
  );
});

test("the checksum is CRC-32, and the header of a record matches its documentation", () => {
  expect(crc32(new TextEncoder().encode("123456789"))).toBe(0xcbf43926);
  expect(crc32(new Uint8Array(32))).toBe(0x190a55ad);
  expect(crc32(Uint8Array.from({ length: 32 }, (_, i) => i))).toBe(0x91267e8a);
  const out = new ByteWriter();
  const fields = { type: recordTypes.points, points: 2, sequence: 7, from: 1, to: 2, salt: 0x01020304 };
  writeRecord(out, fields, (writer) => (writer.raw(Uint8Array.of(1, 2, 3)), 1));

  expect(Buffer.from(out.written()).toString("hex")).toBe(
    "5446521a0100010003000000020000000000000000001c40000000000000f03f00000000000000400403020170bc83b800000000c1cd7a890102030000000000",
  );
});
