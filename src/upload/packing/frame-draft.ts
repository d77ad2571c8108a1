// A frame while it is being planned: which points are in it, and how many bytes that makes, to the byte.
import { type Steps, stepWork } from "../../lib/in-slices.ts";
import { Columns } from "../series/columns.ts";
import { leastTimeLength, textLength, timeLength } from "../series/number-text.ts";
import type { SeriesQueue } from "../series/series-queue.ts";
import { columnOverhead, nullBytes, type Part, timeOverhead } from "./frame-plan.ts";
import { lookupWork, RowSet } from "./row-set.ts";

const lookupsPerStep = stepWork / lookupWork;
/** Adding a column takes as long as copying so many points, beside those that it has. */
const columnWork = 10;
/** Columns of so few points are looked at at once. */
const shortColumn = 1_024;

/** What a column adds to a frame: its cells, their text and commas, times that are new and their bytes. */
interface Cost {
  readonly cells: number;
  text: number;
  rows: number;
  times: number;
}

/** Takes columns as long as they fit. Memory is used again for the next frame. */
export class FrameDraft {
  readonly #rows = new RowSet();
  readonly #column = new Columns();
  /** Times of the last column that was read: most columns have the same as the one before. */
  readonly #shared = new Columns();
  #parts: Part[] = [];
  #bytes = 0;
  #cells = 0;
  #points = 0;
  #work = 0;
  /** Work of `addShared` since others ran. */
  #unyielded = 0;
  /** Bytes of the whole request. */
  maxBytes = 0;

  /** Begins an empty frame of `bytes`. */
  begin(bytes: number, maxBytes: number): void {
    this.#rows.clear();
    this.#parts = [];
    this.#bytes = bytes;
    this.#cells = 0;
    this.#points = 0;
    this.maxBytes = maxBytes;
  }

  get parts(): readonly Part[] {
    return this.#parts;
  }

  get width(): number {
    return this.#parts.length;
  }

  get height(): number {
    return this.#rows.size;
  }

  get bytes(): number {
    return this.#bytes;
  }

  get points(): number {
    return this.#points;
  }

  get nulls(): number {
    return this.#rows.size * this.#parts.length - this.#cells;
  }

  /** Points looked at so far, in this frame and those before. */
  get work(): number {
    return this.#work;
  }

  /** Ascending, each once. */
  times(): Steps<Float64Array> {
    return this.#rows.sorted();
  }

  /** Times of `queue` that the frame has not, and their bytes. */
  *freshRows(queue: SeriesQueue): Steps<{ rows: number; bytes: number }> {
    yield* queue.read(queue.count, this.#column);
    const { count } = this.#column;
    this.#work += count;
    const cost = { cells: count, text: 0, rows: 0, times: 0 };
    yield* this.#weigh(cost);
    return { rows: cost.rows, bytes: cost.times };
  }

  /** How many of the oldest points fit beside what is in the frame. */
  *prefix(queue: SeriesQueue): Steps<number> {
    const room = this.maxBytes - this.#bytes - queue.input.length - columnOverhead;
    // As many as there are times already, and of others as many as there is room for the times alone.
    const most = this.#rows.size + Math.max(0, Math.floor(room / (leastTimeLength + timeOverhead)));
    yield* queue.read(Math.min(queue.count, most), this.#column);
    const { count } = this.#column;
    this.#work += count;
    const left = { bytes: room - this.#rows.size * nullBytes };
    for (let from = 0; from < count; from += lookupsPerStep) {
      const to = Math.min(count, from + lookupsPerStep);
      const fits = this.#fitting(left, from, to);
      if (fits < to) return fits;
      yield (to - from) * lookupWork;
    }
    return count;
  }

  /**
   * As `add`, at once, where the points have the times of the column before; undefined: they may not have, or it is time to
   * let others run. Most columns are added so, and nothing is allocated for a step of each.
   */
  addShared(queue: SeriesQueue, points: number): boolean | undefined {
    if (this.#isTooLarge(queue, points)) return false;
    const isShared = this.#parts.length > 0 && this.#shared.count === points && this.#unyielded < stepWork;
    const text = isShared && points <= shortColumn ? queue.textBytesNow(this.#shared.times, points) : undefined;
    if (text === undefined) return undefined;
    this.#unyielded += points + columnWork;
    this.#work += points;
    return this.#addColumn(queue, points, points, text + points, 0, 0);
  }

  /** Adds the oldest `points` of `queue` if they fit. */
  *add(queue: SeriesQueue, points: number): Steps<boolean> {
    if (this.#isTooLarge(queue, points)) return false;
    yield this.#unyielded;
    this.#unyielded = 0;
    const shared = this.#parts.length > 0 && this.#shared.count === points;
    const text = shared ? yield* queue.textBytesAt(this.#shared.times, points) : undefined;
    if (text !== undefined) {
      this.#work += points;
      return this.#addColumn(queue, points, points, text + points, 0, 0);
    }
    yield* queue.read(points, this.#column);
    const { times, count } = this.#column;
    const cost = { cells: count, text: count, rows: 0, times: 0 };
    this.#work += count;
    yield* this.#weigh(cost);
    if (!this.#addColumn(queue, points, count, cost.text, cost.rows, cost.times)) return false;
    if (cost.rows > 0) yield* this.#addRows(times, count, cost.rows);
    this.#shared.reserve(count);
    this.#shared.times.set(times.subarray(0, count));
    this.#shared.count = count;
    return true;
  }

  /** Adds all points of `members`, which have the same times, to columns that are in the frame, if that costs few nulls. */
  *join(members: readonly SeriesQueue[]): Steps<boolean> {
    const [first] = members;
    if (!first) return false;
    const { rows, bytes: timeBytes } = yield* this.freshRows(first);
    const { times } = this.#column;
    let text = 0;
    for (const member of members) {
      const bytes = member.count === first.count ? yield* member.textBytesAt(times, member.count) : undefined;
      if (bytes === undefined) return false;
      text += bytes + member.count;
    }
    const cells = first.count * members.length;
    const nulls = rows * this.#parts.length - cells;
    const bytes = this.#bytes + timeBytes + text + nulls * nullBytes;
    if (bytes > this.maxBytes || nulls > cells) return false;
    yield* this.#addRows(times, first.count, rows);
    this.#bytes = bytes;
    this.#cells += cells;
    this.#points += cells;
    return true;
  }

  /** Adds up what the column that was read takes. */
  *#weigh(cost: Cost): Steps<void> {
    for (let from = 0; from < cost.cells; from += lookupsPerStep) {
      const to = Math.min(cost.cells, from + lookupsPerStep);
      this.#weighBetween(cost, from, to);
      yield (to - from) * lookupWork;
    }
  }

  #weighBetween(cost: Cost, from: number, to: number): void {
    const { times, forms } = this.#column;
    for (let i = from; i < to; i++) {
      cost.text += textLength(forms[i]!);
      if (this.#rows.has(times[i]!)) continue;
      cost.rows++;
      cost.times += timeLength(times[i]!) + timeOverhead;
    }
  }

  /** The first of the column's points that does not fit into what is left, or `to`. */
  #fitting(left: { bytes: number }, from: number, to: number): number {
    const { times, forms } = this.#column;
    const width = this.#parts.length;
    for (let i = from; i < to; i++) {
      left.bytes -= textLength(forms[i]!) + 1;
      if (this.#rows.has(times[i]!)) left.bytes += nullBytes;
      else left.bytes -= timeLength(times[i]!) + timeOverhead + width * nullBytes;
      if (left.bytes < 0) return i;
    }
    return to;
  }

  /** `fresh`: how many of them the frame has not. */
  *#addRows(times: Float64Array, count: number, fresh: number): Steps<void> {
    yield* this.#rows.reserve(this.#rows.size + fresh);
    for (let from = 0; from < count; from += lookupsPerStep) {
      const to = Math.min(count, from + lookupsPerStep);
      for (let i = from; i < to; i++) this.#rows.add(times[i]!);
      yield (to - from) * lookupWork;
    }
  }

  /** The whole series does not fit even without its times, so its times are not read. */
  #isTooLarge({ count, ascending, input, textBytes }: SeriesQueue, points: number): boolean {
    if (points !== count || !ascending) return false;
    return this.#bytes + input.length + columnOverhead + textBytes + points > this.maxBytes;
  }

  /** As `Cost` says it, without an object for each column. */
  #addColumn(queue: SeriesQueue, points: number, cells: number, text: number, rows: number, times: number): boolean {
    const height = this.#rows.size + rows;
    const nulls = rows * this.#parts.length + height - cells;
    const bytes = this.#bytes + times + queue.input.length + columnOverhead + text + nulls * nullBytes;
    if (bytes > this.maxBytes) return false;
    this.#bytes = bytes;
    this.#cells += cells;
    this.#points += points;
    this.#parts.push({ queue, source: queue, count: points });
    return true;
  }
}
