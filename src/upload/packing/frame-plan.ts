// The content of a request and its exact size.
//
//   {"jsonrpc":"2.0","method":"integration.insert","id":7,"params":{"integration":"…","data":{
//     "times":["2026-01-01T00:00:00Z",…],"series":{"boiler.temp":[21.5,null,…],…}}}}
//
// A frame is a matrix of times and series. Each distinct time takes its text and 3 bytes, each series its Input ID and
// 5 bytes. Each cell takes its text and 1 byte, each null 5 bytes. The last element of each list has no comma.
import type { InputId } from "../../core/point.ts";
import type { Steps } from "../../lib/flow/in-slices.ts";
import type { Columns } from "../series/columns.ts";
import type { SeriesQueue } from "../series/series-queue.ts";

export interface ColumnSource {
  readonly input: InputId;
  /**
   * Copies the first `count` points in ascending time. Of points with equal times, only the last is copied. With
   * `values`, times are omitted. False: they do not strictly ascend, and nothing was copied.
   */
  read(count: number, into: Columns, what: "points" | "values"): Steps<boolean>;
  /** As `read` without yielding, for few points. False: times do not strictly ascend, and nothing was copied. */
  readNow?(count: number, into: Columns, what: "points" | "values"): boolean;
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

/** Backlog points of a series, followed by later live points. */
export class JoinedColumn implements ColumnSource {
  readonly input: InputId;
  readonly #backlog: SeriesQueue;
  readonly #backlogCount: number;
  readonly #live: SeriesQueue;

  constructor(backlog: SeriesQueue, backlogCount: number, live: SeriesQueue) {
    this.input = backlog.input;
    this.#backlog = backlog;
    this.#backlogCount = backlogCount;
    this.#live = live;
  }

  /** `count` must be the points of the backlog and all live ones. */
  *read(count: number, into: Columns, what: "points" | "values"): Steps<boolean> {
    into.reserve(count);
    yield* this.#backlog.readBehind(this.#backlogCount, into, what);
    yield* this.#live.readBehind(count - this.#backlogCount, into, what);
    return true;
  }
}
