// A frame during planning: its points and its exact size in bytes.
//
// A frame has thousands of columns, and most are short. A generator for each would be most of what planning allocates.
// Methods that process a column therefore return the result itself where the column is short, otherwise the steps to it.
import { inSteps, type Steps, stepWork } from "../../lib/flow/in-slices.ts";
import { leastTimeLength, textLength, timeLength } from "../series/number-text.ts";
import { Columns } from "../series/point-memory.ts";
import type { SeriesQueue } from "../series/series-queue.ts";
import { type ColumnSource, columnOverhead, nullBytes, PlannedColumns, timeOverhead } from "./frame.ts";
import { lookupWork, RowSet } from "./shared-times.ts";

/** Cost of adding a column, in points, in addition to its own points. */
const columnWork = 10;
/** Largest column that is processed without yielding. */
const shortColumn = stepWork / lookupWork;

/** Times of a column that are not in the frame: their number and their bytes. */
export interface FreshRows {
  readonly rows: number;
  readonly times: number;
}

/** A series with more than its frame may take. */
type QueuedColumn = ColumnSource & Pick<SeriesQueue, "count" | "ascending" | "textBytes" | "textBytesAt">;

/** Additional size due to a column: cells, their text without commas, and new times with their bytes. */
type Cost = Record<"cells" | "text" | "rows" | "times", number>;

/** Accepts columns as long as they fit. Reuses its memory for the next frame. */
export class FrameDraft<Source extends ColumnSource = SeriesQueue> {
  readonly #rows = new RowSet();
  readonly #column = new Columns();
  /** Cost of the column that was read last. One object, because a frame has thousands of columns. */
  readonly #cost: Cost = { cells: 0, text: 0, rows: 0, times: 0 };
  /** `#column` and `#cost` are those of the oldest `#weighedPoints` of this source. Undefined: they are out of date. */
  #weighed: Source | undefined;
  #weighedPoints = 0;
  /** Times of the last added column, which the next one usually shares. */
  readonly #shared = new Columns();
  /** The columns, up to `#width`. */
  readonly #sources: Source[] = [];
  readonly #counts: number[] = [];
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
  get parts(): PlannedColumns<Source> {
    const counts = Uint32Array.from(this.#counts.slice(0, this.#width));
    return new PlannedColumns(this.#sources.slice(0, this.#width), counts);
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

  /**
   * The new times of all points of `queue`, valid until the next call of any method. Undefined: the points do not fit.
   */
  freshRows(queue: Source & QueuedColumn): FreshRows | Steps<FreshRows> | undefined {
    if (this.#isTooLarge(queue, queue.count)) return undefined;
    return this.#weighAtOnce(queue, queue.count) ? this.#cost : this.#weigh(queue, queue.count);
  }

  /** Adds the oldest `points` of `queue` if they fit. */
  add(queue: Source & QueuedColumn, points: number): boolean | Steps<boolean> {
    if (this.#isTooLarge(queue, points)) return false;
    const isShared = this.#width > 0 && this.#shared.count === points;
    const text = isShared ? queue.textBytesAt(this.#shared.times, points) : undefined;
    this.#unyielded += columnWork;
    if (text !== undefined) {
      this.#work += points;
      this.#unyielded += points;
      return this.#addColumn(queue, points, points, text + points, 0, 0);
    }
    const isReady = points <= shortColumn && this.#weighAtOnce(queue, points) && this.#rows.hasRoom(this.#cost.rows);
    if (!isReady) return this.addInSteps(queue, points);
    if (!this.#addWeighed(queue, points)) return false;
    this.#rows.add(this.#column.times, 0, this.#column.count);
    this.#unyielded += this.#column.count * lookupWork;
    this.#share();
    return true;
  }

  /** As `add`, for a column of any kind. */
  *addInSteps(source: Source, points: number): Steps<boolean> {
    if (this.#weighed !== source || this.#weighedPoints !== points) yield* this.#weigh(source, points);
    if (!this.#addWeighed(source, points)) return false;
    yield* this.#addRows();
    this.#share();
    return true;
  }

  /** Number of oldest points that fit into the frame. The times of `queue` must ascend. */
  *prefix(queue: QueuedColumn): Steps<number> {
    const room = this.maxBytes - this.#bytes - queue.input.length - columnOverhead;
    // Upper bound: the existing times, plus as many new ones as fit without values.
    const most = this.#rows.size + Math.max(0, Math.floor(room / (leastTimeLength + timeOverhead)));
    this.#weighed = undefined;
    queue.read(Math.min(queue.count, most), this.#column, "points");
    const { count } = this.#column;
    this.#work += count;
    const left = { bytes: room - this.#rows.size * nullBytes };
    for (let from = 0; from < count; from += shortColumn) {
      const to = Math.min(count, from + shortColumn);
      const fits = this.#fitting(left, from, to);
      if (fits < to) return fits;
      yield (to - from) * lookupWork;
    }
    return count;
  }

  /** Appends all points of `members`, which share times, to their existing columns if that needs few nulls. */
  *join(members: readonly (Source & QueuedColumn)[]): Steps<boolean> {
    const [first] = members;
    if (!first) return false;
    if (!this.#weighAtOnce(first, first.count)) yield* this.#weigh(first, first.count);
    const { rows, times: timeBytes } = this.#cost;
    let text = 0;
    for (const member of members) {
      const bytes = member.count === first.count ? member.textBytesAt(this.#column.times, member.count) : undefined;
      if (bytes === undefined) return false;
      text += bytes + member.count;
      const work = this.takeUnyielded(member.count);
      if (work > 0) yield work;
    }
    const cells = first.count * members.length;
    const nulls = rows * this.#width - cells;
    const bytes = this.#bytes + timeBytes + text + nulls * nullBytes;
    if (bytes > this.maxBytes || nulls > cells) return false;
    yield* this.#addRows();
    this.#weighed = undefined;
    this.#bytes = bytes;
    this.#cells += cells;
    this.#points += cells;
    return true;
  }

  /** Reads the oldest `points` of `source` and determines their cost. */
  *#weigh(source: Source, points: number): Steps<FreshRows> {
    const isAscending = source.read(points, this.#column, "points");
    yield this.takeUnyielded(points, 0);
    if (!isAscending) yield* this.#column.sort();
    this.#startWeighing(source, points);
    yield* inSteps(this.#column.count, lookupWork, (from, to) => this.#weighBetween(from, to));
    return this.#cost;
  }

  /** As `#weigh` without yielding. False: the column is long or not in order. */
  #weighAtOnce(queue: Source & QueuedColumn, points: number): boolean {
    if (this.#weighed === queue && this.#weighedPoints === points) return true;
    if (points > shortColumn || !queue.ascending) return false;
    queue.read(points, this.#column, "points");
    this.#startWeighing(queue, points);
    this.#weighBetween(0, points);
    this.#unyielded += points * lookupWork;
    return true;
  }

  #startWeighing(source: Source, points: number): void {
    this.#weighed = source;
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

  /** Adds the column that was weighed. The caller adds its times. */
  #addWeighed(source: Source, points: number): boolean {
    const { cells, text, rows, times } = this.#cost;
    if (!this.#addColumn(source, points, cells, text + cells, rows, times)) return false;
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

  /** Adds the times of the column that was weighed. */
  *#addRows(): Steps<void> {
    if (this.#cost.rows === 0) return;
    yield* this.#rows.reserve(this.#rows.size + this.#cost.rows);
    const { times, count } = this.#column;
    yield* inSteps(count, lookupWork, (from, to) => this.#rows.add(times, from, to));
  }

  /**
   * True if the points certainly exceed the limit. They are then not read, so that no column is much longer than a frame
   * may be.
   */
  #isTooLarge({ count, ascending, input, textBytes }: QueuedColumn, points: number): boolean {
    if (!ascending) return false;
    const text = points === count ? textBytes : points;
    const times = Math.max(0, points - this.#rows.size) * (leastTimeLength + timeOverhead);
    return this.#bytes + input.length + columnOverhead + text + points + times > this.maxBytes;
  }

  #addColumn(source: Source, points: number, cells: number, text: number, rows: number, times: number): boolean {
    const height = this.#rows.size + rows;
    const nulls = rows * this.#width + height - cells;
    const bytes = this.#bytes + times + source.input.length + columnOverhead + text + nulls * nullBytes;
    if (bytes > this.maxBytes) return false;
    this.#bytes = bytes;
    this.#cells += cells;
    this.#points += points;
    this.#sources[this.#width] = source;
    this.#counts[this.#width++] = points;
    return true;
  }
}
