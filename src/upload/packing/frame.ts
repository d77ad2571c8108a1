// The content of a request, its exact size, and its text.
//
//   {"jsonrpc":"2.0","method":"integration.insert","id":7,"params":{"integration":"…","data":{
//     "times":["2026-01-01T00:00:00Z",…],"series":{"boiler.temp":[21.5,null,…],…}}}}
//
// A frame is a matrix of times and series. Each distinct time takes its text and 3 bytes, each series its Input ID and
// 5 bytes. Each cell takes its text and 1 byte, each null 5 bytes. The last element of each list has no comma.
import type { InputId } from "../../core/point.ts";
import { stepWork } from "../../lib/flow/in-slices.ts";
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
/**
 * Least size of a piece but the last. Larger than what a socket takes before it asks to wait, so that it has taken a piece
 * by the time it asks for the next one.
 */
const pieceBytes = 2 ** 18;
/** More than the longest text between two checks of the size: an Input ID and a value. */
const spareBytes = 1_024;
const nullText = Buffer.from("null,".repeat(4_096), "latin1");

/** Encodes planned frames piece by piece into a reused buffer. */
export class FrameWriter {
  readonly #envelope: Envelope;
  readonly #column = new Columns();
  readonly #times = new TimeWriter();
  /** Row of the next cell of a column that does not have all rows. */
  #row = 0;
  readonly #bytes: Buffer = Buffer.allocUnsafeSlow(pieceBytes + spareBytes);
  /** End of the present piece. */
  #at = 0;
  /** Bytes of the pieces before. */
  #before = 0;
  #calls = 0;

  constructor(envelope: Envelope) {
    this.#envelope = envelope;
  }

  /** As `RequestBody.write`. Throws after a later call, which uses the same buffer, and if points of the plan change. */
  *write(plan: FramePlan, id: number): Generator<number | Uint8Array, void> {
    const call = ++this.#calls;
    const { times, columns } = plan;
    const column = this.#column;
    this.#before = 0;
    this.#at = this.#bytes.write(this.#envelope.head(id), 0, "latin1");
    for (let from = 0; from < times.length; ) {
      const next = this.#writeTimes(times, from, Math.min(times.length, from + timesPerStep));
      yield (next - from) * timeWork;
      from = next;
      if (this.#isFull) yield* this.#piece(call);
    }
    this.#replaceLast(this.#envelope.between);
    let unyielded = 0;
    for (let i = 0; i < columns.length; i++) {
      if (this.#isFull) yield* this.#piece(call);
      const source = columns.sources[i]!;
      const count = columns.counts[i]!;
      this.#begin(source.input);
      const isAscending = source.read(count, column, count === times.length ? "values" : "points");
      if (!isAscending) yield* column.sort();
      // The column has as many distinct times as the frame has rows, so they are equal.
      const isFull = column.count === times.length;
      this.#row = 0;
      for (let from = 0; from < column.count; ) {
        const to = Math.min(column.count, from + stepWork);
        const next = isFull ? this.#writeValues(from, to) : this.#writeSparse(times, from, to);
        if (next === from && !this.#isFull) throw new RangeError(`the points of ${source.input} have changed`);
        unyielded += next - from;
        from = next;
        if (this.#isFull) yield* this.#piece(call);
        if (unyielded < stepWork) continue;
        yield unyielded;
        unyielded = 0;
      }
      while (!isFull && this.#row < times.length) {
        this.#row += this.#writeNulls(times.length - this.#row);
        if (this.#isFull) yield* this.#piece(call);
      }
      unyielded += times.length - column.count + columnWork;
      this.#end();
    }
    yield unyielded;
    this.#replaceLast(this.#envelope.tail);
    const bytes = this.#before + this.#at;
    if (bytes !== plan.bytes) throw new RangeError(`frame of ${bytes} bytes was planned with ${plan.bytes}`);
    yield this.#bytes.subarray(0, this.#at);
  }

  get #isFull(): boolean {
    return this.#at >= pieceBytes;
  }

  /** Yields what is written, except the last byte, which may be replaced. */
  *#piece(call: number): Generator<Uint8Array, void> {
    const last = this.#at - 1;
    yield this.#bytes.subarray(0, last);
    if (call !== this.#calls) throw new Error("another request is being written");
    this.#bytes[0] = this.#bytes[last]!;
    this.#before += last;
    this.#at = 1;
  }

  #replaceLast(text: string): void {
    this.#at += this.#bytes.write(text, this.#at - 1, "latin1") - 1;
  }

  #begin(input: InputId): void {
    const bytes = this.#bytes;
    let at = this.#at;
    bytes[at++] = quote;
    at += bytes.write(input, at, "latin1");
    bytes[at++] = quote;
    bytes[at++] = colon;
    bytes[at++] = open;
    this.#at = at;
  }

  #end(): void {
    this.#bytes[this.#at - 1] = close;
    this.#bytes[this.#at++] = comma;
  }

  /** Returns the index of the first time that is not written. The same applies to values. */
  #writeTimes(times: Float64Array, from: number, to: number): number {
    const bytes = this.#bytes;
    let at = this.#at;
    let i = from;
    for (; i < to && at < pieceBytes; i++) {
      bytes[at++] = quote;
      at = this.#times.write(bytes, at, times[i]!);
      bytes[at++] = quote;
      bytes[at++] = comma;
    }
    this.#at = at;
    return i;
  }

  #writeValues(from: number, to: number): number {
    const bytes = this.#bytes;
    const { values, forms } = this.#column;
    let at = this.#at;
    let i = from;
    for (; i < to && at < pieceBytes; i++) {
      const form = forms[i]!;
      writeNumber(bytes, at, values[i]!, form);
      at += textLength(form);
      bytes[at++] = comma;
    }
    this.#at = at;
    return i;
  }

  /** Writes the values to their rows, with nulls in between. Moves `#row` past the last one. */
  #writeSparse(rows: Float64Array, from: number, to: number): number {
    const bytes = this.#bytes;
    const { times, values, forms } = this.#column;
    let at = this.#at;
    let row = this.#row;
    let i = from;
    for (; i < to && at < pieceBytes; i++) {
      const time = times[i]!;
      if (rows[row] !== time) {
        const begun = row;
        while (rows[row]! < time) row++;
        this.#at = at;
        const written = this.#writeNulls(row - begun);
        at = this.#at;
        row = begun + written;
        if (rows[row] !== time) break; // The piece is full.
      }
      const form = forms[i]!;
      writeNumber(bytes, at, values[i]!, form);
      at += textLength(form);
      bytes[at++] = comma;
      row++;
    }
    this.#row = row;
    this.#at = at;
    return i;
  }

  /** Writes as many of `count` nulls as fill the piece. Returns how many. */
  #writeNulls(count: number): number {
    const bytes = this.#bytes;
    let at = this.#at;
    const most = Math.min(count, Math.ceil((pieceBytes - at) / nullBytes));
    let left = most * nullBytes;
    if (left <= 40) for (let i = 0; i < left; i++) bytes[at++] = nullText[i]!;
    else for (; left > 0; left -= nullText.length) at += nullText.copy(bytes, at, 0, Math.min(left, nullText.length));
    this.#at = at;
    return most;
  }
}

const quote = 34;
const comma = 44;
const colon = 58;
const open = 91;
const close = 93;
