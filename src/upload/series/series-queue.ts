// The unsettled points of one series, in the order in which they came.
import type { Block } from "../../core/block.ts";
import type { Lane } from "../../core/buffer.ts";
import type { InputId } from "../../core/point.ts";
import { type Steps, stepWork } from "../../lib/in-slices.ts";
import { BlockRuns, type BlockVisit } from "./block-runs.ts";
import type { Columns } from "./columns.ts";
import { isWritableTime, numberForm, scaledNumber, textLength, unscaledNumber } from "./number-text.ts";
import { ChainCursor, noSegment, type PointArena, segmentPoints } from "./point-arena.ts";

export interface MoveOptions {
  readonly stays?: (time: number) => boolean;
  readonly moved?: (block: number, last: boolean) => void;
}

/** First in, first out. Sums that the packer needs are kept as points come and go, so that it reads none of them. */
export class SeriesQueue {
  readonly input: InputId;
  readonly lane: Lane;
  /** The owner's: points came to it lately. */
  isUsed = true;
  readonly #arena: PointArena;
  #head = noSegment;
  #headOffset = 0;
  #tail = noSegment;
  #tailUsed = 0;
  #count = 0;
  #textBytes = 0;
  #timesHash = 0;
  /** Earliest and latest time, where times do not strictly ascend. */
  #span: readonly [earliest: number, latest: number] | undefined;
  readonly #blocks = new BlockRuns();

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
    return this.#span === undefined;
  }

  get firstTime(): number {
    return this.#arena.times[this.#head * segmentPoints + this.#headOffset] ?? Number.NaN;
  }

  /** Time of the newest arrival; −Infinity where none is here. */
  get lastTime(): number {
    if (this.#count === 0) return Number.NEGATIVE_INFINITY;
    return this.#arena.times[this.#tail * segmentPoints + this.#tailUsed - 1]!;
  }

  /** How many points ever came. */
  get arrived(): number {
    return this.#blocks.arrived;
  }

  /** False: no point here has this time. */
  spans(time: number): boolean {
    return time >= (this.#span?.[0] ?? this.firstTime) && time <= (this.#span?.[1] ?? this.lastTime);
  }

  /** Number of the block that the oldest point came in. */
  get firstBlock(): number {
    return this.#blocks.first;
  }

  /**
   * Appends points of a series of a block, up to the first that JSON cannot express: gives where that is, or `to`. `block` is
   * its number; `from` and `to` are places among its values, `shift` further are the times.
   */
  appendFrom({ times, values }: Block, shift: number, from: number, to: number, block: number): number {
    for (let at = from; at < to; at++) {
      const form = numberForm(values[at]!);
      if (form === 0 || !isWritableTime(times[at + shift]!)) return at;
      this.append(times[at + shift]!, scaledNumber(values[at]!, form), form, block);
    }
    return to;
  }

  /** `scaled`: as `scaledNumber` gives it for the value. */
  append(time: number, scaled: number, form: number, block: number): void {
    const arena = this.#arena;
    const { lastTime } = this;
    if (this.#span) this.#span = [Math.min(this.#span[0], time), Math.max(this.#span[1], time)];
    else if (time <= lastTime) this.#span = [Math.min(this.firstTime, time), lastTime];
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
    this.#blocks.add(block);
    this.#count++;
    this.#textBytes += textLength(form);
    this.#timesHash = (this.#timesHash + hashOf(time)) | 0;
  }

  /**
   * Moves the oldest points behind those of `other`, `most` at most, up to the first that `stays`. Gives how many. `moved`
   * is called for each with the number of its block, and whether this queue holds no other point of it.
   */
  moveTo(other: SeriesQueue, most: number, { stays, moved }: MoveOptions = {}): number {
    const { times, values, forms } = this.#arena;
    let count = 0;
    for (; count < most && this.#count > 0 && stays?.(this.firstTime) !== true; count++) {
      const at = this.#head * segmentPoints + this.#headOffset;
      other.append(times[at]!, values[at]!, forms[at]!, this.firstBlock);
      this.drop(1, (block, _blocks, _points, last) => moved?.(block, last));
    }
    return count;
  }

  /** Copies the oldest `count` points, by ascending time; of those with the same time the one that came last. */
  *read(count: number, into: Columns): Steps<void> {
    into.reserve(count);
    yield* this.readBehind(count, into, "points");
    if (this.#span) yield* into.sort();
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
    if (this.#span) return false;
    into.reserve(count);
    yield* this.readBehind(count, into, "values");
    return true;
  }

  /** As `read`, or the values alone, at once, for few points; false where times do not strictly ascend, and nothing was copied. */
  readNow(count: number, into: Columns, what: "points" | "values"): boolean {
    if (this.#span) return false;
    into.reserve(count);
    this.#frontNow().copy(count, into, what);
    return true;
  }

  /**
   * Bytes of the values of the oldest `count` points as JSON text, where their times are `times`; undefined where they are
   * not. Reads without copying.
   */
  *textBytesAt(times: Float64Array, count: number): Steps<number | undefined> {
    if (this.#span) return undefined;
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
    const bytes = this.#span ? -1 : this.#frontNow().textAt(times, 0, count);
    return bytes < 0 ? undefined : bytes;
  }

  #front(): ChainCursor {
    return new ChainCursor(this.#arena, this.#head, this.#headOffset);
  }

  /** The same, good until that of another queue is asked for: there is one for all. */
  #frontNow(): ChainCursor {
    return this.#arena.cursor.moveTo(this.#head, this.#headOffset);
  }

  /** Removes the oldest `count` points. Calls `visit` for the blocks they came in, oldest first. */
  drop(count: number, visit: BlockVisit): void {
    if (count === this.#count) this.#clear();
    else this.#dropPart(count);
    this.#blocks.drop(count, visit);
  }

  #dropPart(count: number): void {
    const arena = this.#arena;
    const { times, forms, next } = arena;
    let [head, offset, textBytes, timesHash] = [this.#head, this.#headOffset, 0, this.#timesHash];
    for (let left = count; left > 0; left--) {
      const at = head * segmentPoints + offset++;
      textBytes += textLength(forms[at]!);
      timesHash = (timesHash - hashOf(times[at]!)) | 0;
      if (offset < segmentPoints) continue;
      const freed = head;
      head = next[freed]!;
      offset = 0;
      arena.free(freed);
    }
    this.#head = head;
    this.#headOffset = offset;
    this.#textBytes -= textBytes;
    this.#timesHash = timesHash;
    this.#count -= count;
  }

  /** Points that came in the block of the oldest one and are still here. */
  get firstRun(): number {
    return this.#blocks.firstPoints;
  }

  /** As `BlockRuns.whole`. */
  wholeBlocks(count: number): number {
    return this.#blocks.whole(count);
  }

  /** Copies the oldest `count` points as they came, with the numbers of their blocks. */
  copy(count: number): { times: Float64Array; values: Float64Array; blocks: Float64Array } {
    const copied = {
      times: new Float64Array(count),
      values: new Float64Array(count),
      blocks: new Float64Array(count),
    };
    this.#blocks.fill(copied.blocks);
    const { times, values, forms, next } = this.#arena;
    let segment = this.#head;
    let offset = this.#headOffset;
    for (let i = 0; i < count; i++) {
      const at = segment * segmentPoints + offset;
      copied.times[i] = times[at]!;
      copied.values[i] = unscaledNumber(values[at]!, forms[at]!);
      if (++offset === segmentPoints) {
        segment = next[segment]!;
        offset = 0;
      }
    }
    return copied;
  }

  /** All points are gone. */
  #clear(): void {
    if (this.#count > 0)
      this.#arena.freeChain(this.#head, this.#tail, Math.ceil((this.#headOffset + this.#count) / segmentPoints));
    this.#head = noSegment;
    this.#tail = noSegment;
    this.#headOffset = 0;
    this.#tailUsed = 0;
    this.#count = 0;
    this.#textBytes = 0;
    this.#timesHash = 0;
    this.#span = undefined;
  }
}

/** Added up over the times of a series, so that it can be kept up when points leave. */
function hashOf(time: number): number {
  const low = (time % 0x1_0000_0000) | 0;
  const high = (time / 0x1_0000_0000) | 0;
  const mixed = Math.imul(low ^ Math.imul(high, 0x9e3779b1), 0x85ebca6b);
  return Math.imul(mixed ^ (mixed >>> 15), 0xc2b2ae35);
}
