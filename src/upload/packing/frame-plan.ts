// The content of a request and its exact size.
//
//   {"jsonrpc":"2.0","method":"integration.insert","id":7,"params":{"integration":"…","data":{
//     "times":["2026-01-01T00:00:00Z",…],"series":{"boiler.temp":[21.5,null,…],…}}}}
//
// A frame is a matrix of times and series. Each distinct time takes its text and 3 bytes, each series its Input ID and
// 5 bytes. Each cell takes its text and 1 byte, each null 5 bytes. The last element of each list has no comma.
import type { InputId } from "../../core/point.ts";
import type { Steps } from "../../lib/in-slices.ts";
import type { Columns } from "../series/columns.ts";
import type { SeriesQueue } from "../series/series-queue.ts";

export interface ColumnSource {
  readonly input: InputId;
  /** Copies the first `count` points in ascending time. Of points with equal times, only the last is copied. */
  read(count: number, into: Columns): Steps<void>;
  /** As `read` without times. False: the times do not strictly ascend, and nothing was copied. */
  readValues?(count: number, into: Columns): Steps<boolean>;
  /** As `read` or `readValues` without yielding, for few points. False: not possible, and nothing was copied. */
  readNow?(count: number, into: Columns, what: "points" | "values"): boolean;
}

export interface PlannedColumn<Source extends ColumnSource = ColumnSource> {
  readonly source: Source;
  /** Number of points from the start of the source. */
  readonly count: number;
}

export interface FramePlan<Source extends ColumnSource = ColumnSource> {
  /** Distinct times, ascending. */
  readonly times: Float64Array;
  readonly columns: readonly PlannedColumn<Source>[];
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

/** The oldest `count` points of a queue. */
export interface Part extends PlannedColumn<SeriesQueue> {
  readonly queue: SeriesQueue;
}

export interface PackedPlan extends FramePlan {
  /** Points to remove from the window on acceptance. */
  readonly parts: readonly Part[];
}

/** Backlog points of a series, followed by later live points. */
export class JoinedColumn implements ColumnSource {
  readonly input: InputId;
  readonly #backlog: Part;
  readonly #live: Part;

  constructor(backlog: Part, live: Part) {
    this.input = backlog.queue.input;
    this.#backlog = backlog;
    this.#live = live;
  }

  *readValues(count: number, into: Columns): Steps<boolean> {
    yield* this.#read(count, into, "values");
    return true;
  }

  read(count: number, into: Columns): Steps<void> {
    return this.#read(count, into, "points");
  }

  /** `count` must be the sum of both parts. */
  *#read(count: number, into: Columns, what: "points" | "values"): Steps<void> {
    into.reserve(count);
    for (const { queue, count: part } of [this.#backlog, this.#live]) yield* queue.readBehind(part, into, what);
  }
}
