// A frame while it is being planned: which points are in it, and how many bytes that makes, to the byte.
import { Columns } from "./columns.ts";
import { columnOverhead, nullBytes, timeOverhead } from "./frame-plan.ts";
import { textLength } from "./number-text.ts";
import type { Part } from "./packed-column.ts";
import { RowSet } from "./row-set.ts";
import type { SeriesQueue } from "./series-queue.ts";
import { timeLength } from "./time-text.ts";

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
  times(): Float64Array {
    return this.#rows.sorted();
  }

  /** Times of `queue` that the frame has not, and their bytes. */
  freshRows(queue: SeriesQueue): { rows: number; bytes: number } {
    queue.read(queue.count, this.#column);
    const { times, count } = this.#column;
    this.#work += count;
    let rows = 0;
    let bytes = 0;
    for (let i = 0; i < count; i++) {
      if (this.#rows.has(times[i]!)) continue;
      rows++;
      bytes += timeLength(times[i]!) + timeOverhead;
    }
    return { rows, bytes };
  }

  /** How many of the oldest points fit beside what is in the frame. */
  prefix(queue: SeriesQueue): number {
    queue.read(queue.count, this.#column);
    const { times, forms, count } = this.#column;
    this.#work += count;
    const width = this.#parts.length;
    let left = this.maxBytes - this.#bytes - queue.input.length - columnOverhead - this.#rows.size * nullBytes;
    for (let i = 0; i < count; i++) {
      left -= textLength(forms[i]!) + 1;
      if (this.#rows.has(times[i]!)) left += nullBytes;
      else left -= timeLength(times[i]!) + timeOverhead + width * nullBytes;
      if (left < 0) return i;
    }
    return count;
  }

  /** Adds the oldest `points` of `queue` if they fit. */
  add(queue: SeriesQueue, points: number): boolean {
    const shared = this.#parts.length > 0 && this.#shared.count === points;
    const text = shared ? queue.textBytesAt(this.#shared.times, points) : undefined;
    if (text !== undefined) {
      this.#work += points;
      return this.#addColumn(queue, points, { cells: points, text: text + points, rows: 0, times: 0 });
    }
    queue.read(points, this.#column);
    const { times, forms, count } = this.#column;
    const cost = { cells: count, text: count, rows: 0, times: 0 };
    this.#work += count;
    for (let i = 0; i < count; i++) {
      cost.text += textLength(forms[i]!);
      if (this.#rows.has(times[i]!)) continue;
      cost.rows++;
      cost.times += timeLength(times[i]!) + timeOverhead;
    }
    if (!this.#addColumn(queue, points, cost)) return false;
    if (cost.rows > 0) for (let i = 0; i < count; i++) this.#rows.add(times[i]!);
    this.#shared.reserve(count);
    this.#shared.times.set(times.subarray(0, count));
    this.#shared.count = count;
    return true;
  }

  #addColumn(queue: SeriesQueue, points: number, cost: Cost): boolean {
    const height = this.#rows.size + cost.rows;
    const nulls = cost.rows * this.#parts.length + height - cost.cells;
    const bytes = this.#bytes + cost.times + queue.input.length + columnOverhead + cost.text + nulls * nullBytes;
    if (bytes > this.maxBytes) return false;
    this.#bytes = bytes;
    this.#cells += cost.cells;
    this.#points += points;
    this.#parts.push({ queue, count: points });
    return true;
  }

  /** Adds all points of `members`, which have the same times, to columns that are in the frame, if that costs few nulls. */
  join(members: readonly SeriesQueue[]): boolean {
    const [first] = members;
    if (!first) return false;
    const { rows, bytes: timeBytes } = this.freshRows(first);
    const { times } = this.#column;
    let text = 0;
    for (const member of members) {
      const bytes = member.count === first.count ? member.textBytesAt(times, member.count) : undefined;
      if (bytes === undefined) return false;
      text += bytes + member.count;
    }
    const cells = first.count * members.length;
    const nulls = rows * this.#parts.length - cells;
    const bytes = this.#bytes + timeBytes + text + nulls * nullBytes;
    if (bytes > this.maxBytes || nulls > cells) return false;
    for (let i = 0; i < first.count; i++) this.#rows.add(times[i]!);
    this.#bytes = bytes;
    this.#cells += cells;
    this.#points += cells;
    return true;
  }
}
