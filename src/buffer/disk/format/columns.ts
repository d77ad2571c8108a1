// The payload of a record of points: columns by series, grouped by series that share their times. Pure and bit-exact.
//
//   groups                         varint
//   for each group
//     points a series, and whether its times are raw    varint, 2 × points + raw
//     first time                   varint, from the record's `from`
//     first step                   varint, if there are two points
//     changes of the step          zigzag, one for each point from the third
//     or, raw                      float64 each, where times lie too far apart for exact differences
//     runs of series               varint; for each: gap to the run before it (varint), length (varint)
//     for each series
//       code                       u8: 0 to 9 decimals, 14 float32, 15 float64
//       values                     decimals: value × 10^code, the first and then differences, zigzag; else raw
//
// A series is identified by its place in the dictionary of the segment. Places ascend within a group.
//
// Cold records store the values in streams of their own (`dense-values.ts`).
import { type ByteReader, type ByteWriter, copied, isExact, maxScaled, powers } from "../files/bytes.ts";

const maxDecimals = 9;
const codeFloat32 = 14;
const codeFloat64 = 15;
/** Points sorted by series, then time. `starts` has one entry more than `series`. */
export interface SortedColumns {
  readonly series: Uint32Array;
  readonly starts: Uint32Array;
  readonly seriesCount: number;
  readonly times: Float64Array;
  readonly values: Float64Array;
}

/**
 * Sorts points by series and time: a counting sort by series, and a sort by time only if times do not ascend. Reuses its
 * memory: a result is valid until the next call.
 */
export class SeriesSorter {
  #counts = new Uint32Array(64);
  #series = new Uint32Array(64);
  #starts = new Uint32Array(65);
  #times = new Float64Array(256);
  #values = new Float64Array(256);

  /** Points of the same series and time stay in their order. */
  sort(ids: Uint32Array, times: Float64Array, values: Float64Array, from: number, to: number): SortedColumns {
    const seriesCount = this.#count(ids, from, to);
    const count = to - from;
    if (this.#times.length < count) {
      this.#times = new Float64Array(roomFor(count));
      this.#values = new Float64Array(roomFor(count));
    }
    let start = 0;
    for (let i = 0; i < seriesCount; i++) {
      const id = this.#series[i]!;
      const n = this.#counts[id]!;
      this.#starts[i] = start;
      this.#counts[id] = start;
      start += n;
    }
    this.#starts[seriesCount] = start;
    for (let i = from; i < to; i++) {
      const at = this.#counts[ids[i]!]!++;
      this.#times[at] = times[i]!;
      this.#values[at] = values[i]!;
    }
    for (let i = 0; i < seriesCount; i++) {
      this.#counts[this.#series[i]!] = 0;
      this.#sortByTime(this.#starts[i]!, this.#starts[i + 1]!);
    }
    return {
      series: this.#series,
      starts: this.#starts,
      seriesCount,
      times: this.#times,
      values: this.#values,
    };
  }

  shrink(points: number): void {
    if (this.#times.length <= points) return;
    this.#times = new Float64Array(256);
    this.#values = new Float64Array(256);
  }

  #count(ids: Uint32Array, from: number, to: number): number {
    let seriesCount = 0;
    let ascending = true;
    for (let i = from; i < to; i++) {
      const id = ids[i]!;
      if (id >= this.#counts.length) this.#counts = copied(this.#counts, new Uint32Array(roomFor(id + 1)));
      if (this.#counts[id]!++ > 0) continue;
      if (seriesCount === this.#series.length) this.#growSeries();
      if (seriesCount > 0 && id < this.#series[seriesCount - 1]!) ascending = false;
      this.#series[seriesCount++] = id;
    }
    if (!ascending) this.#series.subarray(0, seriesCount).sort();
    return seriesCount;
  }

  #growSeries(): void {
    this.#series = copied(this.#series, new Uint32Array(this.#series.length * 2));
    this.#starts = new Uint32Array(this.#series.length + 1);
  }

  #sortByTime(start: number, end: number): void {
    const times = this.#times;
    let i = start + 1;
    while (i < end && times[i]! >= times[i - 1]!) i++;
    if (i >= end) return;
    const values = this.#values;
    const order = Array.from({ length: end - start }, (_, k) => start + k).sort((a, b) => times[a]! - times[b]!);
    const sortedTimes = order.map((at) => times[at]!);
    const sortedValues = order.map((at) => values[at]!);
    times.set(sortedTimes, start);
    values.set(sortedValues, start);
  }
}

const roomFor = (count: number) => 2 ** Math.ceil(Math.log2(Math.max(count, 64)));

/** Receives all points of a series in a record. Both columns have one entry per point, valid until it returns. */
export type SeriesVisitor = (series: number, times: Float64Array, values: Float64Array) => void;

type WriteValues = (values: Float64Array, start: number, end: number) => void;

/** Writes all points of `columns`. `from` is the earliest of their times. */
export function writeColumns(
  out: ByteWriter,
  columns: SortedColumns,
  from: number,
  write: WriteValues = (values, start, end) => writeValues(out, values, start, end),
): void {
  const { series, starts, seriesCount } = columns;
  const groupEnds: number[] = [];
  for (let i = 1; i <= seriesCount; i++) if (i === seriesCount || !sameTimes(columns, i - 1, i)) groupEnds.push(i);
  out.varint(groupEnds.length);
  let first = 0;
  for (const end of groupEnds) {
    writeTimes(out, columns.times, starts[first]!, starts[first + 1]!, from);
    writeRuns(out, series, first, end);
    for (let i = first; i < end; i++) write(columns.values, starts[i]!, starts[i + 1]!);
    first = end;
  }
}

function sameTimes({ starts, times }: SortedColumns, a: number, b: number): boolean {
  const startA = starts[a]!;
  const startB = starts[b]!;
  const count = starts[a + 1]! - startA;
  if (starts[b + 1]! - startB !== count) return false;
  for (let i = 0; i < count; i++) if (times[startA + i] !== times[startB + i]) return false;
  return true;
}

function writeTimes(out: ByteWriter, times: Float64Array, start: number, end: number, from: number): void {
  const count = end - start;
  const raw = times[end - 1]! - from >= maxScaled;
  out.varint(count * 2 + (raw ? 1 : 0));
  if (raw) {
    for (let i = start; i < end; i++) out.f64(times[i]!);
    return;
  }
  out.varint(times[start]! - from);
  if (count < 2) return;
  out.varint(times[start + 1]! - times[start]!);
  out.deltasOfDeltas(times, start, end);
}

function writeRuns(out: ByteWriter, series: Uint32Array, first: number, end: number): void {
  let runs = 1;
  for (let i = first + 1; i < end; i++) if (series[i] !== series[i - 1]! + 1) runs++;
  out.varint(runs);
  let next = 0;
  for (let i = first; i < end; ) {
    const start = i++;
    while (i < end && series[i] === series[i - 1]! + 1) i++;
    out.varint(series[start]! - next);
    out.varint(i - start);
    next = series[i - 1]! + 1;
  }
}

function writeValues(out: ByteWriter, values: Float64Array, start: number, end: number): void {
  const code = codeOf(values, start, end);
  out.u8(code);
  if (code === codeFloat64) for (let i = start; i < end; i++) out.f64(values[i]!);
  else if (code === codeFloat32) for (let i = start; i < end; i++) out.f32(values[i]!);
  else {
    const power = powers[code]!;
    let before = 0;
    for (let i = start; i < end; i++) {
      const scaled = Math.round(values[i]! * power);
      out.zigzag(scaled - before);
      before = scaled;
    }
  }
}

/** The smallest number of decimals that reproduces every value bit by bit, otherwise the shortest float that does. */
function codeOf(values: Float64Array, start: number, end: number): number {
  let decimals = 0;
  /** Values before this index were checked with fewer decimals only, which does not imply that they fit with more. */
  let toCheck = start;
  for (let i = start; i < end; i++) {
    const value = values[i]!;
    if (isExact(value, powers[decimals]!)) continue;
    do if (++decimals > maxDecimals) return floatCodeOf(values, start, end);
    while (!isExact(value, powers[decimals]!));
    toCheck = i;
  }
  const power = powers[decimals]!;
  for (let i = start; i < toCheck; i++) if (!isExact(values[i]!, power)) return floatCodeOf(values, start, end);
  return decimals;
}

function floatCodeOf(values: Float64Array, start: number, end: number): number {
  // NaN counts as float64: it has many bit patterns, and a conversion may change them.
  for (let i = start; i < end; i++) if (Math.fround(values[i]!) !== values[i]) return codeFloat64;
  return codeFloat32;
}

/** Reads `count` values, which stay valid until the next call. */
type ReadValues = (count: number) => Float64Array;

/** Reads the output of `writeColumns`. Throws `RangeError` for an invalid payload. */
export function readColumns(
  reader: ByteReader,
  from: number,
  visit: SeriesVisitor,
  read: ReadValues = (count) => readValues(reader, count),
): void {
  for (let groups = reader.varint(); groups > 0; groups--) {
    const times = readTimes(reader, from);
    for (const series of readRuns(reader)) visit(series, times, read(times.length));
  }
}

function readRuns(reader: ByteReader): number[] {
  const series: number[] = [];
  let next = 0;
  for (let runs = reader.varint(); runs > 0; runs--) {
    next += reader.varint();
    const length = reader.varint();
    // Each series takes at least one byte. A greater count is damage; check it before memory is allocated.
    if (length > reader.left) throw new RangeError("more series than bytes");
    for (const end = next + length; next < end; next++) series.push(next);
  }
  return series;
}

/** Memory for one column at a time: allocating it for each takes longer than reading the values. */
export class ColumnBuffer {
  #memory = new Float64Array(1_024);
  #column = this.#memory;

  /** A column of `count` arbitrary values, valid until the next call. */
  column(count: number): Float64Array {
    if (this.#memory.length < count) this.#memory = new Float64Array(count);
    // Most columns of a record have the same length.
    if (this.#column.length !== count) this.#column = this.#memory.subarray(0, count);
    return this.#column;
  }
}

const timesBuffer = new ColumnBuffer();
const valuesBuffer = new ColumnBuffer();

function readTimes(reader: ByteReader, from: number): Float64Array {
  const head = reader.varint();
  const count = Math.floor(head / 2);
  // Each point takes at least one byte. A greater count is damage; check it before memory is allocated.
  if (count < 1 || count > reader.left) throw new RangeError("more points than bytes");
  const times = timesBuffer.column(count);
  if (head % 2 === 1) {
    for (let i = 0; i < count; i++) times[i] = reader.f64();
    return times;
  }
  times[0] = from + reader.varint();
  if (count > 1) times[1] = times[0] + reader.varint();
  reader.deltasOfDeltas(times);
  return times;
}

function readValues(reader: ByteReader, count: number): Float64Array {
  const code = reader.u8();
  const values = valuesBuffer.column(count);
  if (code === codeFloat64) for (let i = 0; i < count; i++) values[i] = reader.f64();
  else if (code === codeFloat32) for (let i = 0; i < count; i++) values[i] = reader.f32();
  else if (code <= maxDecimals) {
    const power = powers[code]!;
    let scaled = 0;
    for (let i = 0; i < count; i++) {
      scaled += reader.zigzag();
      values[i] = scaled / power;
    }
  } else throw new RangeError(`unknown code ${code} of values`);
  return values;
}
