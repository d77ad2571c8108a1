import fc from "fast-check";
import { expect, test } from "vitest";
import { ByteReader, ByteWriter } from "../../../../src/buffer/disk/files/bytes.ts";
import { SeriesSorter } from "../../../../src/buffer/disk/format/columns.ts";
import { dictionaryOf, writeDenseColumns } from "../../../../src/buffer/disk/format/dense-choice.ts";
import { readDenseColumns } from "../../../../src/buffer/disk/format/dense-reader.ts";
import { runs } from "../../../support/property.ts";
import { seeded } from "../../../support/runtime.ts";

const start = 1.7e15;

/** Sorts columns of series that share their times. */
function sorted(columns: readonly Float64Array[]) {
  const count = columns[0]?.length ?? 0;
  const ids = new Uint32Array(count * columns.length);
  const times = new Float64Array(ids.length);
  const values = new Float64Array(ids.length);
  columns.forEach((column, s) => {
    ids.fill(s, s * count, (s + 1) * count);
    values.set(column, s * count);
    for (let i = 0; i < count; i++) times[s * count + i] = start + i * 1e6;
  });
  return new SeriesSorter().sort(ids, times, values, 0, ids.length);
}

function written(columns: readonly Float64Array[]): Uint8Array {
  const out = new ByteWriter();
  writeDenseColumns(out, sorted(columns), start);
  return out.written().slice();
}

function readBack(bytes: Uint8Array, columns: number, count: number): Float64Array[] {
  const read = Array.from({ length: columns }, () => new Float64Array(count));
  readDenseColumns(new ByteReader(bytes), start, (series, times, values) => {
    for (const [i, time] of times.entries()) read[series]![(time - start) / 1e6] = values[i]!;
  });
  return read;
}

/** Bytes in hexadecimal, because numbers do not show the payload of a NaN. */
const bitsOf = (column: Float64Array) =>
  Buffer.from(column.buffer, column.byteOffset, column.byteLength).toString("hex");

const odd = new Float64Array(
  new BigUint64Array([0x7ff8_0000_0000_0001n, 0x7ff0_0000_0000_0123n, 0xfff8_dead_beef_0001n, 0x8000_0000_0000_0000n])
    .buffer,
);

/** A column of `count` values: in every second one of a single kind, else a run of each of several, and a few odd ones. */
function column(seed: number, count: number): Float64Array {
  const random = seeded(seed);
  const only = random() < 0.5 ? Math.floor(random() * 7) : undefined;
  const values = new Float64Array(count);
  const bits = new Uint32Array(values.buffer);
  for (let from = 0; from < count; ) {
    const to = Math.min(count, from + 1 + Math.floor(random() * 3_000));
    const kind = only ?? Math.floor(random() * 7);
    const power = 10 ** Math.floor(random() * 15);
    const few = Array.from({ length: 1 + Math.floor(random() * 300) }, () => random() * 1e3);
    let walk = random() * 1e5;
    for (let i = from; i < to; i++) {
      walk += Math.round((random() - 0.5) * 40);
      if (kind === 0) values[i] = walk / power;
      else if (kind === 1) values[i] = random() - 0.5;
      else if (kind === 2) values[i] = Math.fround(random() * 100);
      else if (kind === 3) values[i] = few[Math.floor(random() * few.length)]!;
      else if (kind === 4) values[i] = Math.round(random() * 2 ** 49) / power;
      else if (kind === 5) values[i] = walk * 2 ** 900;
      else {
        bits[2 * i] = random() * 2 ** 32;
        bits[2 * i + 1] = random() * 2 ** 32;
      }
    }
    from = to;
  }
  if (only !== undefined) return values;
  const oddWords = new Uint32Array(odd.buffer);
  for (let i = 0; i < count / 200; i++) {
    const at = Math.floor(random() * count);
    const which = Math.floor(random() * odd.length);
    bits.set(oddWords.subarray(2 * which, 2 * which + 2), 2 * at);
  }
  return values;
}

test("every column is returned bit for bit, payloads of NaN and -0 included", () => {
  fc.assert(
    fc.property(
      fc.integer(),
      fc.integer({ min: 1, max: 6_000 }),
      fc.integer({ min: 1, max: 4 }),
      (seed, count, series) => {
        const columns = Array.from({ length: series }, (_, s) => column(seed + s, count));
        const back = readBack(written(columns), series, count);
        expect(back.map(bitsOf)).toEqual(columns.map(bitsOf));
      },
    ),
    runs(100),
  );
});

test.each([
  ["a walk with two decimals", 6, (i: number, random: () => number) => Math.round(2_000 + i / 9 + random() * 20) / 100],
  ["forty doubles in any order", 6, (_: number, random: () => number) => Math.sqrt(Math.floor(random() * 40))],
  [
    "three decimals, one value in fifty none",
    12,
    (i: number, random: () => number) => (i % 50 === 0 ? random() : Math.round(random() * 255) / 1e3),
  ],
  ["integers of 40 bits in any order", 41, (_: number, random: () => number) => Math.floor(random() * 2 ** 40)],
  ["random doubles of one size", 55, (_: number, random: () => number) => 1 + random()],
  ["a value that stands still", 0.1, () => 17.25],
])("%s takes at most %d bits a value, and is returned bit for bit", (_, bits, valueAt) => {
  const random = seeded(1);
  const count = 20_000;
  const values = Float64Array.from({ length: count }, (__, i) => valueAt(i, random));
  const constant = written([new Float64Array(count)]).length;
  const bytes = written([values]);
  expect(((bytes.length - constant) * 8) / count).toBeLessThan(bits);
  expect(readBack(bytes, 1, count).map(bitsOf)).toEqual([bitsOf(values)]);
});

test("a dictionary holds each value once, in ascending order, and returns every one, -0 and subnormal ones included", () => {
  const anyFinite = fc.oneof(
    fc.constantFrom(0, -0, Number.MIN_VALUE, -Number.MAX_VALUE),
    fc.integer({ min: -500, max: 500 }),
    fc.double({ noDefaultInfinity: true, noNaN: true }),
  );
  fc.assert(
    fc.property(fc.array(anyFinite, { minLength: 1, maxLength: 4_000, size: "max" }), fc.integer(), (few, seed) => {
      const random = seeded(seed);
      const values = Float64Array.from({ length: 5_000 }, () => few[Math.floor(random() * few.length)]!);

      const { different, places } = dictionaryOf(values, 0, values.length, values.length)!;

      expect(bitsOf(Float64Array.from(values, (_, i) => different[places[i]!]!))).toBe(bitsOf(values));
      expect(different).toHaveLength(
        new Set(Array.from(values, (value) => (Object.is(value, -0) ? "-0" : value))).size,
      );
      // The dictionary is sorted by the upper 43 bits.
      const words = new Uint32Array(different.buffer);
      for (let i = 0; i < words.length; i += 2) words[i]! &= ~(2 ** 21 - 1);
      expect(bitsOf(different)).toBe(bitsOf(different.toSorted()));
    }),
    runs(20),
  );
});

test("damaged bytes are refused or give other values, but never more points", () => {
  const bytes = written([column(1, 3_000), column(2, 3_000)]);
  fc.assert(
    fc.property(fc.nat(bytes.length - 1), fc.integer({ min: 1, max: 255 }), (at, change) => {
      let points = 0;
      try {
        readDenseColumns(
          new ByteReader(bytes.with(at, bytes[at]! ^ change)),
          start,
          (_, { length }) => (points += length),
        );
      } catch (error) {
        expect(error).toBeInstanceOf(Error);
      }
      expect(points).toBeLessThan(20_000);
    }),
    runs(500),
  );
});
