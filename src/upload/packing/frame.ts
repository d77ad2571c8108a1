// The content of a request, its exact size, and its text.
//
//   {"jsonrpc":"2.0","method":"integration.insert","id":7,"params":{"integration":"…","data":{
//     "times":["2026-01-01T00:00:00Z",…],"series":{"boiler.temp":[21.5,null,…],…}}}}
//
// A frame is a matrix of times and series. Each distinct time takes its text and 3 bytes, each series its Input ID and
// 5 bytes. Each cell takes its text and 1 byte, each null 5 bytes. The last element of each list has no comma.
import type { InputId } from "../../core/point.ts";
import { type Steps, stepWork } from "../../lib/flow/in-slices.ts";
import { TimeWriter, textLength, writeNumber } from "../series/number-text.ts";
import { Columns } from "../series/point-memory.ts";
import type { SeriesQueue } from "../series/series-queue.ts";

export interface ColumnSource {
  readonly input: InputId;
  /**
   * Replaces the content of `into` by the first `count` points. With `values`, times are omitted. False: the times do not
   * strictly ascend. All points are then in `into` in order of arrival, and the caller must sort them.
   */
  read(count: number, into: Columns, what: "points" | "values"): boolean;
}

/** The first `counts[i]` points of each `sources[i]`. Two arrays, because an object a column would outlive its request. */
export class PlannedColumns<Source extends ColumnSource = ColumnSource> {
  readonly sources: readonly Source[];
  readonly counts: Readonly<Uint32Array>;

  constructor(sources: readonly Source[], counts: Readonly<Uint32Array>) {
    this.sources = sources;
    this.counts = counts;
  }

  static all<Source extends ColumnSource & { readonly count: number }>(sources: readonly Source[]) {
    const counts = new Uint32Array(sources.length);
    for (let i = 0; i < counts.length; i++) counts[i] = sources[i]!.count;
    return new PlannedColumns(sources, counts);
  }

  get length(): number {
    return this.sources.length;
  }

  *[Symbol.iterator](): Generator<{ readonly source: Source; readonly count: number }, void> {
    for (const [i, source] of this.sources.entries()) yield { source, count: this.counts[i]! };
  }
}

export interface FramePlan<Source extends ColumnSource = ColumnSource> {
  /** Distinct times, ascending. */
  readonly times: Float64Array;
  readonly columns: PlannedColumns<Source>;
  readonly points: number;
  readonly nulls: number;
  /** Size of the whole request. */
  readonly bytes: number;
}

/** Quotes and comma of a time. */
export const timeOverhead = 3;
/** Quotes, colon, brackets and comma of a series, less the comma that its last value does not have. */
export const columnOverhead = 5;
/** `null` and its comma. */
export const nullBytes = 5;

/** The request around the matrix. Request IDs have ten digits, so the size is known before numbering. */
export class Envelope {
  readonly head: (id: number) => string;
  readonly between = '],"series":{';
  readonly tail = "}}}}";
  /** Bytes of an empty frame, less the commas that the last time and series do not have. */
  readonly bytes: number;

  constructor(integration: string) {
    this.head = (id) =>
      `{"jsonrpc":"2.0","method":"integration.insert","id":${id},"params":{"integration":${JSON.stringify(integration)},"data":{"times":[`;
    this.bytes = Buffer.byteLength(this.head(firstRequestId)) + this.between.length + this.tail.length - 2;
  }
}

/** First request ID. All IDs have the same length. */
export const firstRequestId = 1_000_000_000;

/** The oldest points of queues. */
export type QueueColumns = PlannedColumns<SeriesQueue>;

export interface PackedPlan extends FramePlan {
  /** Points to remove from the window on acceptance. */
  readonly parts: QueueColumns;
}

/** The oldest `backlogCount` points of a series, which must be in order, followed by all of its later live points. */
export function joinedColumn(backlog: SeriesQueue, backlogCount: number, live: SeriesQueue): ColumnSource {
  return {
    input: backlog.input,
    read(count, into, what) {
      into.reserve(count);
      backlog.copy(backlogCount, into, what);
      live.copy(count - backlogCount, into, what);
      return true;
    },
  };
}

/** Cost of writing a time, in points. */
const timeWork = 4;
const timesPerStep = stepWork / timeWork;
/** Cost of a column in addition to its cells, in points. */
const columnWork = 20;
/** Size below which memory touched by larger frames is not released. */
const smallFrame = 2 ** 20;
/** Ratio of the largest earlier frame to the current one above which memory is released. */
const muchSmaller = 8;
const nullText = Buffer.from("null,".repeat(4_096), "latin1");

/** Encodes planned frames into a reused buffer. */
export class FrameWriter {
  readonly #envelope: Envelope;
  readonly #column = new Columns();
  readonly #times = new TimeWriter();
  /** Row of the next cell of a column that does not have all rows. */
  #row = 0;
  #bytes: Buffer;
  /** Bytes of `#bytes` that were written at least once. */
  #touched = 0;

  /** `maxBytes` only reserves address space; memory is touched on use. */
  constructor(envelope: Envelope, maxBytes: number) {
    this.#envelope = envelope;
    this.#bytes = Buffer.allocUnsafeSlow(maxBytes);
  }

  /** Returns a view of the buffer that is valid until the next call. */
  *write(plan: FramePlan, id: number): Steps<Uint8Array> {
    this.#fit(plan.bytes);
    const bytes = this.#bytes;
    const { times, columns } = plan;
    const column = this.#column;
    let at = bytes.write(this.#envelope.head(id), 0, "latin1");
    for (let from = 0; from < times.length; from += timesPerStep) {
      const to = Math.min(times.length, from + timesPerStep);
      at = this.#writeTimes(bytes, at, times, from, to);
      yield (to - from) * timeWork;
    }
    at += bytes.write(this.#envelope.between, at - 1, "latin1") - 1;
    let unyielded = 0;
    for (let i = 0; i < columns.length; i++) {
      const source = columns.sources[i]!;
      const count = columns.counts[i]!;
      bytes[at++] = quote;
      at += bytes.write(source.input, at, "latin1");
      bytes[at++] = quote;
      bytes[at++] = colon;
      bytes[at++] = open;
      const isAscending = source.read(count, column, count === times.length ? "values" : "points");
      if (!isAscending) yield* column.sort();
      // The column has as many distinct times as the frame has rows, so they are equal.
      const isFull = column.count === times.length;
      this.#row = 0;
      for (let from = 0; from < column.count; from += stepWork) {
        const to = Math.min(column.count, from + stepWork);
        at = isFull ? this.#writeValues(bytes, at, from, to) : this.#writeSparse(bytes, at, times, from, to);
        unyielded += to - from;
        if (unyielded < stepWork) continue;
        yield unyielded;
        unyielded = 0;
      }
      if (!isFull) at = writeNulls(bytes, at, times.length - this.#row);
      unyielded += times.length - column.count + columnWork;
      bytes[at - 1] = close;
      bytes[at++] = comma;
    }
    yield unyielded;
    at += bytes.write(this.#envelope.tail, at - 1, "latin1") - 1;
    if (at !== plan.bytes) throw new RangeError(`frame of ${at} bytes was planned with ${plan.bytes}`);
    return bytes.subarray(0, at);
  }

  /** Replaces the buffer after a burst. A socket may still use the old one, so it is left to the collector. */
  #fit(bytes: number): void {
    const shrinks = this.#touched > Math.max(smallFrame, bytes * muchSmaller);
    if (shrinks || bytes > this.#bytes.length) {
      this.#bytes = Buffer.allocUnsafeSlow(Math.max(bytes, this.#bytes.length));
      this.#touched = 0;
    }
    this.#touched = Math.max(this.#touched, bytes);
  }

  #writeTimes(bytes: Buffer, start: number, times: Float64Array, from: number, to: number): number {
    let at = start;
    for (let i = from; i < to; i++) {
      bytes[at++] = quote;
      at = this.#times.write(bytes, at, times[i]!);
      bytes[at++] = quote;
      bytes[at++] = comma;
    }
    return at;
  }

  #writeValues(bytes: Buffer, start: number, from: number, to: number): number {
    const { values, forms } = this.#column;
    let at = start;
    for (let i = from; i < to; i++) {
      const form = forms[i]!;
      writeNumber(bytes, at, values[i]!, form);
      at += textLength(form);
      bytes[at++] = comma;
    }
    return at;
  }

  /** Writes the values to their rows, with nulls in between. Moves `#row` past the last one. */
  #writeSparse(bytes: Buffer, start: number, rows: Float64Array, from: number, to: number): number {
    const { times, values, forms } = this.#column;
    let at = start;
    let row = this.#row;
    for (let i = from; i < to; i++) {
      const time = times[i]!;
      if (rows[row] !== time) {
        const begun = row;
        while (rows[row]! < time) row++;
        at = writeNulls(bytes, at, row - begun);
      }
      const form = forms[i]!;
      writeNumber(bytes, at, values[i]!, form);
      at += textLength(form);
      bytes[at++] = comma;
      row++;
    }
    this.#row = row;
    return at;
  }
}

function writeNulls(bytes: Buffer, start: number, count: number): number {
  let at = start;
  let left = count * 5;
  if (left <= 40) {
    for (let i = 0; i < left; i++) bytes[at++] = nullText[i]!;
    return at;
  }
  while (left > 0) {
    const length = Math.min(left, nullText.length);
    nullText.copy(bytes, at, 0, length);
    at += length;
    left -= length;
  }
  return at;
}

const quote = 34;
const comma = 44;
const colon = 58;
const open = 91;
const close = 93;
