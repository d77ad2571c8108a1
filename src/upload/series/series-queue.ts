// The unsettled points of one series, in the order in which they came.
import type { Lane } from "../../core/buffer.ts";
import type { InputId } from "../../core/point.ts";
import { type Steps, stepWork } from "../../lib/in-slices.ts";
import type { Columns } from "./columns.ts";
import { textLength, unscaledNumber } from "./number-text.ts";
import { ChainCursor, noSegment, type PointArena, segmentPoints } from "./point-arena.ts";

export interface MoveOptions {
  readonly stays?: (time: number) => boolean;
  readonly moved?: (slot: number, last: boolean) => void;
}

/** First in, first out. Sums that the packer needs are kept as points come and go, so that it reads none of them. */
export class SeriesQueue {
  readonly input: InputId;
  readonly lane: Lane;
  readonly #arena: PointArena;
  #head = noSegment;
  #headOffset = 0;
  #tail = noSegment;
  #tailUsed = 0;
  #count = 0;
  #textBytes = 0;
  #timesHash = 0;
  #lastTime = Number.NEGATIVE_INFINITY;
  #ascending = true;
  /** How many points had ever come when the last one of a block came, one entry a block, oldest first. */
  #blockEnds: number[] = [];
  /** Index of the oldest of them that counts. */
  #firstEnd = 0;
  #lastBlock = -1;
  #earliest = Number.POSITIVE_INFINITY;
  #latest = Number.NEGATIVE_INFINITY;
  #arrived = 0;

  constructor(lane: Lane, input: InputId, arena: PointArena) {
    this.lane = lane;
    this.input = input;
    this.#arena = arena;
  }

  get count(): number {
    return this.#count;
  }

  /** Bytes of all values as JSON text. */
  get textBytes(): number {
    return this.#textBytes;
  }

  /** The same for series with the same times; the order does not matter. */
  get timesHash(): number {
    return this.#timesHash;
  }

  /** Whether times strictly ascend; then no two are the same. */
  get ascending(): boolean {
    return this.#ascending;
  }

  get firstTime(): number {
    return this.#arena.times[this.#head * segmentPoints + this.#headOffset] ?? Number.NaN;
  }

  /** Time of the newest arrival. */
  get lastTime(): number {
    return this.#lastTime;
  }

  /** How many points ever came. */
  get arrived(): number {
    return this.#arrived;
  }

  /** False: no point here has this time. */
  spans(time: number): boolean {
    return time >= this.#earliest && time <= this.#latest;
  }

  /** Slot of the block that the oldest point came in. */
  get firstBlock(): number {
    return this.#arena.blocks[this.#head * segmentPoints + this.#headOffset] ?? 0;
  }

  /** `scaled`: as `scaledNumber` gives it for the value. */
  append(time: number, scaled: number, form: number, block: number): void {
    const arena = this.#arena;
    if (this.#tailUsed === segmentPoints || this.#tail === noSegment) {
      const segment = arena.allocate();
      if (this.#tail === noSegment) {
        this.#head = segment;
        this.#headOffset = 0;
      } else arena.next[this.#tail] = segment;
      this.#tail = segment;
      this.#tailUsed = 0;
    }
    const at = this.#tail * segmentPoints + this.#tailUsed++;
    arena.times[at] = time;
    arena.values[at] = scaled;
    arena.forms[at] = form;
    arena.blocks[at] = block;
    if (block === this.#lastBlock) this.#blockEnds[this.#blockEnds.length - 1]!++;
    else this.#blockEnds.push(this.#arrived + 1);
    this.#lastBlock = block;
    this.#count++;
    this.#textBytes += textLength(form);
    this.#timesHash = (this.#timesHash + hashOf(time)) | 0;
    if (time <= this.#lastTime) this.#ascending = false;
    this.#lastTime = time;
    if (time < this.#earliest) this.#earliest = time;
    if (time > this.#latest) this.#latest = time;
    this.#arrived++;
  }

  /**
   * Moves the oldest points behind those of `other`, `most` at most, up to the first that `stays`. Gives how many. `moved`
   * is called for each with the slot of its block, and whether this queue holds no other point of it.
   */
  moveTo(other: SeriesQueue, most: number, { stays, moved }: MoveOptions = {}): number {
    const { times, values, forms, blocks } = this.#arena;
    let count = 0;
    for (; count < most && this.#count > 0 && stays?.(this.firstTime) !== true; count++) {
      const at = this.#head * segmentPoints + this.#headOffset;
      other.append(times[at]!, values[at]!, forms[at]!, blocks[at]!);
      this.drop(1, (slot, _points, last) => moved?.(slot, last));
    }
    return count;
  }

  /** Copies the oldest `count` points, by ascending time; of those with the same time the one that came last. */
  *read(count: number, into: Columns): Steps<void> {
    into.reserve(count);
    yield* this.readBehind(count, into, "points");
    if (!this.#ascending) yield* into.sort();
  }

  /** Copies the oldest `count` points, as they came, behind what is in `into`, which has room for them; or their values alone. */
  *readBehind(count: number, into: Columns, what: "points" | "values"): Steps<void> {
    const cursor = this.#front();
    for (let left = count; left > 0; left -= stepWork) {
      const part = Math.min(left, stepWork);
      cursor.copy(part, into, what);
      yield part;
    }
  }

  /** The same without the times, where they strictly ascend; false where they do not, and nothing was copied. */
  *readValues(count: number, into: Columns): Steps<boolean> {
    if (!this.#ascending) return false;
    into.reserve(count);
    yield* this.readBehind(count, into, "values");
    return true;
  }

  /** As `read`, or the values alone, at once, for few points; false where times do not strictly ascend, and nothing was copied. */
  readNow(count: number, into: Columns, what: "points" | "values"): boolean {
    if (!this.#ascending) return false;
    into.reserve(count);
    this.#front().copy(count, into, what);
    return true;
  }

  /**
   * Bytes of the values of the oldest `count` points as JSON text, where their times are `times`; undefined where they are
   * not. Reads without copying.
   */
  *textBytesAt(times: Float64Array, count: number): Steps<number | undefined> {
    if (!this.#ascending) return undefined;
    const cursor = this.#front();
    let bytes = 0;
    for (let from = 0; from < count; from += stepWork) {
      const to = Math.min(count, from + stepWork);
      const part = cursor.textAt(times, from, to);
      if (part < 0) return undefined;
      bytes += part;
      yield to - from;
    }
    return bytes;
  }

  /** The same at once, for few points. */
  textBytesNow(times: Float64Array, count: number): number | undefined {
    const bytes = this.#ascending ? this.#front().textAt(times, 0, count) : -1;
    return bytes < 0 ? undefined : bytes;
  }

  #front(): ChainCursor {
    return new ChainCursor(this.#arena, this.#head, this.#headOffset);
  }

  /**
   * Removes the oldest `count` points. Calls `visit` once for each block they came in, oldest first; `last` is true when
   * the queue holds no further point of that block.
   */
  drop(count: number, visit: (block: number, points: number, last: boolean) => void): void {
    const arena = this.#arena;
    const { times, forms, blocks, next } = arena;
    const ends = this.#blockEnds;
    let [head, offset, textBytes, timesHash] = [this.#head, this.#headOffset, 0, this.#timesHash];
    let done = this.#firstEnd;
    let gone = this.#arrived - this.#count;
    for (const until = gone + count; gone < until; ) {
      const end = ends[done]!;
      const upTo = end < until ? end : until;
      const points = upTo - gone;
      const block = blocks[head * segmentPoints + offset]!;
      for (; gone < upTo; gone++) {
        const at = head * segmentPoints + offset++;
        textBytes += textLength(forms[at]!);
        timesHash = (timesHash - hashOf(times[at]!)) | 0;
        if (offset < segmentPoints) continue;
        const freed = head;
        head = next[freed]!;
        offset = 0;
        arena.free(freed);
      }
      if (gone === end) done++;
      visit(block, points, gone === end);
    }
    this.#firstEnd = done;
    if (done > ends.length / 2) this.#forgetEnds();
    this.#head = head;
    this.#headOffset = offset;
    this.#textBytes -= textBytes;
    this.#timesHash = timesHash;
    this.#count -= count;
    if (this.#count === 0) this.#clear();
  }

  /** Points that came in the block of the oldest one and are still here. */
  get firstRun(): number {
    return (this.#blockEnds[this.#firstEnd] ?? this.#arrived) - (this.#arrived - this.#count);
  }

  /**
   * The most points, `count` at most, that end where a block ends: the next point came in another block, or there is none.
   * 0 when the oldest block has more than `count`.
   */
  wholeBlocks(count: number): number {
    const ends = this.#blockEnds;
    const gone = this.#arrived - this.#count;
    let low = this.#firstEnd;
    let high = ends.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (ends[middle]! <= gone + count) low = middle + 1;
      else high = middle;
    }
    return low === this.#firstEnd ? 0 : ends[low - 1]! - gone;
  }

  /** Copies the oldest `count` points as they came, with the slots of their blocks. */
  copy(count: number): { times: Float64Array; values: Float64Array; slots: Uint32Array } {
    const copied = {
      times: new Float64Array(count),
      values: new Float64Array(count),
      slots: new Uint32Array(count),
    };
    const { times, values, forms, blocks, next } = this.#arena;
    let segment = this.#head;
    let offset = this.#headOffset;
    for (let i = 0; i < count; i++) {
      const at = segment * segmentPoints + offset;
      copied.times[i] = times[at]!;
      copied.values[i] = unscaledNumber(values[at]!, forms[at]!);
      copied.slots[i] = blocks[at]!;
      if (++offset === segmentPoints) {
        segment = next[segment]!;
        offset = 0;
      }
    }
    return copied;
  }

  #forgetEnds(): void {
    this.#blockEnds = this.#blockEnds.slice(this.#firstEnd);
    this.#firstEnd = 0;
  }

  #clear(): void {
    if (this.#head !== noSegment) this.#arena.free(this.#head);
    this.#head = noSegment;
    this.#tail = noSegment;
    this.#headOffset = 0;
    this.#tailUsed = 0;
    this.#ascending = true;
    this.#lastTime = Number.NEGATIVE_INFINITY;
    this.#lastBlock = -1;
    this.#earliest = Number.POSITIVE_INFINITY;
    this.#latest = Number.NEGATIVE_INFINITY;
  }
}

/** Added up over the times of a series, so that it can be kept up when points leave. */
function hashOf(time: number): number {
  const low = (time % 0x1_0000_0000) | 0;
  const high = (time / 0x1_0000_0000) | 0;
  const mixed = Math.imul(low ^ Math.imul(high, 0x9e3779b1), 0x85ebca6b);
  return Math.imul(mixed ^ (mixed >>> 15), 0xc2b2ae35);
}
