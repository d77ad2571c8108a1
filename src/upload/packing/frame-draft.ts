// A frame during planning: its points and its exact size in bytes.
import { type Steps, stepWork } from "../../lib/flow/in-slices.ts";
import { leastTimeLength, textLength, timeLength } from "../series/number-text.ts";
import { Columns } from "../series/point-memory.ts";
import type { SeriesQueue } from "../series/series-queue.ts";
import { columnOverhead, nullBytes, PlannedColumns, type QueueColumns, timeOverhead } from "./frame.ts";
import { lookupWork, RowSet } from "./shared-times.ts";

const lookupsPerStep = stepWork / lookupWork;
/** Cost of adding a column, in points, in addition to its own points. */
const columnWork = 10;
/** Largest column that is processed without yielding. */
const shortColumn = 1_024;

/** Times of a column that are not in the frame: their number and their bytes. */
export interface FreshRows {
  readonly rows: number;
  readonly times: number;
}

/** Additional size due to a column: cells, their text without commas, and new times with their bytes. */
type Cost = Record<"cells" | "text" | "rows" | "times", number>;

/** Accepts columns as long as they fit. Reuses its memory for the next frame. */
export class FrameDraft {
  readonly #rows = new RowSet();
  readonly #column = new Columns();
  /** Cost of the column that was read last. One object, because a frame has thousands of columns. */
  readonly #cost: Cost = { cells: 0, text: 0, rows: 0, times: 0 };
  /** `#column` and `#cost` are those of the oldest `#weighedPoints` of this queue. Undefined: they are out of date. */
  #weighed: SeriesQueue | undefined;
  #weighedPoints = 0;
  /** Times of the last added column, which the next one usually shares. */
  readonly #shared = new Columns();
  /** The columns, up to `#width`. */
  readonly #queues: SeriesQueue[] = [];
  #counts = new Uint32Array(64);
  #width = 0;
  #bytes = 0;
  #cells = 0;
  #points = 0;
  #work = 0;
  /** Cost of the work since the last yield. */
  #unyielded = 0;
  /** Limit for the whole request. */
  maxBytes = 0;

  begin(bytes: number, maxBytes: number): void {
    this.#rows.clear();
    this.#weighed = undefined;
    this.#width = 0;
    this.#bytes = bytes;
    this.#cells = 0;
    this.#points = 0;
    this.maxBytes = maxBytes;
  }

  /** A copy. */
  get parts(): QueueColumns {
    return new PlannedColumns(this.#queues.slice(0, this.#width), this.#counts.slice(0, this.#width));
  }

  get width(): number {
    return this.#width;
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
    return this.#rows.size * this.#width - this.#cells;
  }

  /** Points examined so far, including those for earlier frames. */
  get work(): number {
    return this.#work;
  }

  /** Adds `cost` to that of the work since the last yield. Returns what the caller must yield, or 0 below `least`. */
  takeUnyielded(cost: number, least = stepWork): number {
    const sum = this.#unyielded + cost;
    this.#unyielded = sum < least ? sum : 0;
    return sum - this.#unyielded;
  }

  /** Distinct times, ascending. */
  times(): Steps<Float64Array> {
    return this.#rows.sorted();
  }

  /** The new times of all points of `queue`. The result is valid until the next call of any method. */
  *freshRows(queue: SeriesQueue): Steps<FreshRows> {
    if (this.freshNow(queue)) yield this.takeUnyielded(0, 0);
    else yield* this.#weigh(queue, queue.count);
    return this.#cost;
  }

  /** As `freshRows` without yielding. Undefined: the column is long or not in order. */
  freshNow(queue: SeriesQueue): FreshRows | undefined {
    return this.#weighNow(queue, queue.count) ? this.#cost : undefined;
  }

  /** Number of oldest points that fit into the frame. */
  *prefix(queue: SeriesQueue): Steps<number> {
    const room = this.maxBytes - this.#bytes - queue.input.length - columnOverhead;
    // Upper bound: the existing times, plus as many new ones as fit without values.
    const most = this.#rows.size + Math.max(0, Math.floor(room / (leastTimeLength + timeOverhead)));
    this.#weighed = undefined;
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

  /** As `add` without yielding. Undefined: only `add` can add this column, or a yield is due. Nothing was added. */
  addNow(queue: SeriesQueue, points: number): boolean | undefined {
    if (this.#isTooLarge(queue, points)) return false;
    if (points > shortColumn || this.#unyielded >= stepWork) return undefined;
    const isShared = this.#width > 0 && this.#shared.count === points;
    const text = isShared ? queue.textBytesNow(this.#shared.times, points) : undefined;
    if (text !== undefined) {
      this.#unyielded += points + columnWork;
      return this.#addSharing(queue, points, text);
    }
    if (!this.#weighNow(queue, points) || !this.#rows.hasRoom(this.#cost.rows)) return undefined;
    if (!this.#addWeighed(queue, points)) return false;
    const { times, count } = this.#column;
    for (let i = 0; i < count; i++) this.#rows.add(times[i]!);
    this.#unyielded += columnWork + count * lookupWork;
    this.#share();
    return true;
  }

  /** Adds the oldest `points` of `queue` if they fit. */
  *add(queue: SeriesQueue, points: number): Steps<boolean> {
    if (this.#isTooLarge(queue, points)) return false;
    yield this.takeUnyielded(0, 0);
    const shared = this.#width > 0 && this.#shared.count === points;
    const text = shared ? yield* queue.textBytesAt(this.#shared.times, points) : undefined;
    if (text !== undefined) return this.#addSharing(queue, points, text);
    yield* this.#weigh(queue, points);
    if (!this.#addWeighed(queue, points)) return false;
    if (this.#cost.rows > 0) yield* this.#addRows(this.#column.times, this.#column.count, this.#cost.rows);
    this.#share();
    return true;
  }

  /** Appends all points of `members`, which share times, to their existing columns if that needs few nulls. */
  *join(members: readonly SeriesQueue[]): Steps<boolean> {
    const [first] = members;
    if (!first) return false;
    const { rows, times: timeBytes } = yield* this.freshRows(first);
    const { times } = this.#column;
    let text = 0;
    for (const member of members) {
      const bytes = member.count === first.count ? yield* member.textBytesAt(times, member.count) : undefined;
      if (bytes === undefined) return false;
      text += bytes + member.count;
    }
    const cells = first.count * members.length;
    const nulls = rows * this.#width - cells;
    const bytes = this.#bytes + timeBytes + text + nulls * nullBytes;
    if (bytes > this.maxBytes || nulls > cells) return false;
    yield* this.#addRows(times, first.count, rows);
    this.#weighed = undefined;
    this.#bytes = bytes;
    this.#cells += cells;
    this.#points += cells;
    return true;
  }

  /** Reads the oldest `points` of `queue` and determines their cost. */
  *#weigh(queue: SeriesQueue, points: number): Steps<void> {
    yield* queue.read(points, this.#column);
    this.#startWeighing(queue, points);
    for (let from = 0; from < this.#cost.cells; from += lookupsPerStep) {
      const to = Math.min(this.#cost.cells, from + lookupsPerStep);
      this.#weighBetween(from, to);
      yield (to - from) * lookupWork;
    }
  }

  /** As `#weigh` without yielding. False: the column is long or not in order. */
  #weighNow(queue: SeriesQueue, points: number): boolean {
    if (this.#weighed === queue && this.#weighedPoints === points) return true;
    this.#weighed = undefined;
    if (points > shortColumn || !queue.readNow(points, this.#column, "points")) return false;
    this.#startWeighing(queue, points);
    this.#weighBetween(0, points);
    this.#unyielded += points * lookupWork;
    return true;
  }

  #startWeighing(queue: SeriesQueue, points: number): void {
    this.#weighed = queue;
    this.#weighedPoints = points;
    this.#cost.cells = this.#column.count;
    this.#cost.text = 0;
    this.#cost.rows = 0;
    this.#cost.times = 0;
    this.#work += this.#column.count;
  }

  #weighBetween(from: number, to: number): void {
    const { times, forms } = this.#column;
    const cost = this.#cost;
    for (let i = from; i < to; i++) {
      cost.text += textLength(forms[i]!);
      if (this.#rows.has(times[i]!)) continue;
      cost.rows++;
      cost.times += timeLength(times[i]!) + timeOverhead;
    }
  }

  /** Index of the first point that exceeds the remaining bytes, or `to`. */
  #fitting(left: { bytes: number }, from: number, to: number): number {
    const { times, forms } = this.#column;
    const width = this.#width;
    for (let i = from; i < to; i++) {
      left.bytes -= textLength(forms[i]!) + 1;
      if (this.#rows.has(times[i]!)) left.bytes += nullBytes;
      else left.bytes -= timeLength(times[i]!) + timeOverhead + width * nullBytes;
      if (left.bytes < 0) return i;
    }
    return to;
  }

  /** Adds a column with the same times as the last one. */
  #addSharing(queue: SeriesQueue, points: number, text: number): boolean {
    this.#work += points;
    return this.#addColumn(queue, points, points, text + points, 0, 0);
  }

  /** Adds the column that was weighed. The caller adds its times. */
  #addWeighed(queue: SeriesQueue, points: number): boolean {
    const { cells, text, rows, times } = this.#cost;
    if (!this.#addColumn(queue, points, cells, text + cells, rows, times)) return false;
    this.#weighed = undefined;
    return true;
  }

  /** Remembers the times of the added column, which the next one usually shares. */
  #share(): void {
    const { times, count } = this.#column;
    this.#shared.reserve(count);
    // `set` needs a view of the times, which would be an object for each column.
    for (let i = 0; i < count; i++) this.#shared.times[i] = times[i]!;
    this.#shared.count = count;
  }

  /** `fresh`: number of times that are new to the frame. */
  *#addRows(times: Float64Array, count: number, fresh: number): Steps<void> {
    yield* this.#rows.reserve(this.#rows.size + fresh);
    for (let from = 0; from < count; from += lookupsPerStep) {
      const to = Math.min(count, from + lookupsPerStep);
      for (let i = from; i < to; i++) this.#rows.add(times[i]!);
      yield (to - from) * lookupWork;
    }
  }

  /** True if the whole series exceeds the limit even without its times. Its times are then not read. */
  #isTooLarge({ count, ascending, input, textBytes }: SeriesQueue, points: number): boolean {
    if (points !== count || !ascending) return false;
    return this.#bytes + input.length + columnOverhead + textBytes + points > this.maxBytes;
  }

  #addColumn(queue: SeriesQueue, points: number, cells: number, text: number, rows: number, times: number): boolean {
    const height = this.#rows.size + rows;
    const nulls = rows * this.#width + height - cells;
    const bytes = this.#bytes + times + queue.input.length + columnOverhead + text + nulls * nullBytes;
    if (bytes > this.maxBytes) return false;
    this.#bytes = bytes;
    this.#cells += cells;
    this.#points += points;
    if (this.#width === this.#counts.length) {
      const counts = new Uint32Array(this.#width * 2);
      counts.set(this.#counts);
      this.#counts = counts;
    }
    this.#queues[this.#width] = queue;
    this.#counts[this.#width++] = points;
    return true;
  }
}
