// A column of a frame that is packed from the window: the oldest points of a series, of one lane or of both.
import type { InputId } from "../../core/point.ts";
import type { Steps } from "../../lib/in-slices.ts";
import type { Columns } from "../series/columns.ts";
import type { SeriesQueue } from "../series/series-queue.ts";
import type { ColumnSource, FramePlan } from "./frame-plan.ts";

/** The oldest `count` points of a queue. */
export interface Part {
  readonly queue: SeriesQueue;
  readonly count: number;
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
