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

/** Additional size due to a column: cells, their text with commas, and new times with their bytes. */
interface Cost {
  readonly cells: number;
  text: number;
  rows: number;
  times: number;
}

/** Accepts columns as long as they fit. Reuses its memory for the next frame. */
export class FrameDraft {
  readonly #rows = new RowSet();
  readonly #column = new Columns();
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
  /** Cost of `addShared` since the last yield. */
  #unyielded = 0;
  /** Limit for the whole request. */
  maxBytes = 0;

  begin(bytes: number, maxBytes: number): void {
    this.#rows.clear();
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

  /** Distinct times, ascending. */
  times(): Steps<Float64Array> {
    return this.#rows.sorted();
  }

  /** Number and bytes of the times of `queue` that are not in the frame yet. */
  *freshRows(queue: SeriesQueue): Steps<{ rows: number; bytes: number }> {
    yield* queue.read(queue.count, this.#column);
    const { count } = this.#column;
    this.#work += count;
    const cost = { cells: count, text: 0, rows: 0, times: 0 };
    yield* this.#weigh(cost);
    return { rows: cost.rows, bytes: cost.times };
  }

  /** Number of oldest points that fit into the frame. */
  *prefix(queue: SeriesQueue): Steps<number> {
    const room = this.maxBytes - this.#bytes - queue.input.length - columnOverhead;
    // Upper bound: the existing times, plus as many new ones as fit without values.
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

  /** As `add` without yielding. Undefined: times may differ from the last column's, or it must yield first. */
  addShared(queue: SeriesQueue, points: number): boolean | undefined {
    if (this.#isTooLarge(queue, points)) return false;
    const isShared = this.#width > 0 && this.#shared.count === points && this.#unyielded < stepWork;
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
    const shared = this.#width > 0 && this.#shared.count === points;
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

  /** Appends all points of `members`, which share times, to their existing columns if that needs few nulls. */
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
    const nulls = rows * this.#width - cells;
    const bytes = this.#bytes + timeBytes + text + nulls * nullBytes;
    if (bytes > this.maxBytes || nulls > cells) return false;
    yield* this.#addRows(times, first.count, rows);
    this.#bytes = bytes;
    this.#cells += cells;
    this.#points += cells;
    return true;
  }

  /** Determines the cost of the column that was read. */
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

  /** Takes the fields of `Cost` as arguments to avoid an object per column. */
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
