// What goes into one request, and how many bytes that makes: the size model, exact to the byte.
//
//   {"jsonrpc":"2.0","method":"integration.insert","id":7,"params":{"integration":"…","data":{
//     "times":["2026-01-01T00:00:00Z",…],"series":{"boiler.temp":[21.5,null,…],…}}}}
//
// A frame is a matrix of times and series. Each distinct time costs its text and 3 bytes; each series its Input ID and 5;
// each cell its text and 1, a null 5; the last of each list has no comma.
import type { InputId } from "../../core/point.ts";
import type { Steps } from "../../lib/in-slices.ts";
import type { Columns } from "../series/columns.ts";
import type { SeriesQueue } from "../series/series-queue.ts";

/** Where the points of one column come from. */
export interface ColumnSource {
  readonly input: InputId;
  /** Copies the first `count` points by ascending time; of those with the same time the last. */
  read(count: number, into: Columns): Steps<void>;
  /** The same without the times, where they strictly ascend; false where they do not, and nothing was copied. */
  readValues?(count: number, into: Columns): Steps<boolean>;
  /** As `read`, or as `readValues`, at once, for few points; false where it cannot, and nothing was copied. */
  readNow?(count: number, into: Columns, what: "points" | "values"): boolean;
}

export interface PlannedColumn<Source extends ColumnSource = ColumnSource> {
  readonly source: Source;
  /** Points taken from the front of the source. */
  readonly count: number;
}

export interface FramePlan<Source extends ColumnSource = ColumnSource> {
  /** Ascending, each once. */
  readonly times: Float64Array;
  readonly columns: readonly PlannedColumn<Source>[];
  readonly points: number;
  readonly nulls: number;
  /** Length of the whole request. */
  readonly bytes: number;
}

/** Quotes and comma of a time. */
export const timeOverhead = 3;
/** Quotes, colon and brackets of a series, and the comma after it; less the comma that its last value has not. */
export const columnOverhead = 5;
/** `null` and its comma. */
export const nullBytes = 5;

/** What stands around the matrix. The ID of the request has ten digits, so that its size is known before it is numbered. */
export class Envelope {
  readonly head: (id: number) => string;
  readonly between = '],"series":{';
  readonly tail = "}}}}";
  /** Bytes of a frame without times and series, their missing last commas taken off. */
  readonly bytes: number;

  constructor(integration: string) {
    this.head = (id) =>
      `{"jsonrpc":"2.0","method":"integration.insert","id":${id},"params":{"integration":${JSON.stringify(integration)},"data":{"times":[`;
    this.bytes = Buffer.byteLength(this.head(firstRequestId)) + this.between.length + this.tail.length - 2;
  }
}

/** Request IDs count up from here, all of the same length. */
export const firstRequestId = 1_000_000_000;

/** The oldest `count` points of a queue; a column of them where nothing follows. */
export interface Part extends PlannedColumn<SeriesQueue> {
  readonly queue: SeriesQueue;
}

export interface PackedPlan extends FramePlan {
  /** What to take from the window when the frame is accepted. */
  readonly parts: readonly Part[];
}

/** Points of the backlog, followed by fresh ones of the same series, all of them later. */
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

  /** Reads all of it: `count` is the sum of both parts. */
  *#read(count: number, into: Columns, what: "points" | "values"): Steps<void> {
    into.reserve(count);
    for (const { queue, count: part } of [this.#backlog, this.#live]) yield* queue.readBehind(part, into, what);
  }
}
