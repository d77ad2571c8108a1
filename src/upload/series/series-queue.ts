// The unsettled points of one series in order of arrival.
import type { Lane } from "../../core/buffer.ts";
import type { InputId } from "../../core/point.ts";
import { BlockRuns, type BlockVisit } from "./block-runs.ts";
import { textLength } from "./number-text.ts";
import { type Columns, noSegment, type PointArena, segmentPoints } from "./point-memory.ts";

export interface MoveOptions {
  readonly stays?: (time: number) => boolean;
  readonly moved?: (block: number, last: boolean) => void;
}

/** FIFO. Maintains the sums that the packer needs, so that the packer need not read the points. */
export class SeriesQueue {
  readonly input: InputId;
  readonly lane: Lane;
  /** Set by the owner: points arrived recently. */
  isUsed = true;
  /** Set by the owner: the queue of the series after this one in its last block. */
  follower: SeriesQueue | undefined;
  /** Set by the owner: the queue must not be used any more. */
  isRemoved = false;
  readonly #arena: PointArena;
  #head = noSegment;
  #headOffset = 0;
  #tail = noSegment;
  #tailUsed = 0;
  #count = 0;
  #textBytes = 0;
  #timesHash = 0;
  /** Earliest and latest time. Undefined: times strictly ascend. */
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

  /** Equal for series with the same times in any order. */
  get timesHash(): number {
    return this.#timesHash;
  }

  /** Whether times strictly ascend, so that all are distinct. */
  get ascending(): boolean {
    return this.#span === undefined;
  }

  get firstTime(): number {
    return this.#arena.times[this.#head * segmentPoints + this.#headOffset] ?? Number.NaN;
  }

  /** Time of the newest arrival; −Infinity if empty. */
  get lastTime(): number {
    if (this.#count === 0) return Number.NEGATIVE_INFINITY;
    return this.#arena.times[this.#tail * segmentPoints + this.#tailUsed - 1]!;
  }

  /** Number of points that ever arrived. */
  get arrived(): number {
    return this.#blocks.arrived;
  }

  /** Whether `time` is in the range of the queue. False: no point has this time. */
  spans(time: number): boolean {
    return time >= (this.#span?.[0] ?? this.firstTime) && time <= (this.#span?.[1] ?? this.lastTime);
  }

  /** Number of the oldest point's block. */
  get firstBlock(): number {
    return this.#blocks.first;
  }

  /** `scaled`: result of `scaledNumber`. */
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

  /** Moves up to `most` oldest points to `other`, until one `stays`. Returns their number. `moved`: per point. */
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

  /** See `ColumnSource`. */
  read(count: number, into: Columns, what: "points" | "values"): boolean {
    into.reserve(count);
    this.copy(count, into, this.#span ? "points" : what);
    return this.#span === undefined;
  }

  /** Appends the oldest `count` points, or their values, to `into` in order of arrival. Requires capacity. */
  copy(count: number, into: Columns, what: "points" | "values"): Columns {
    return this.#arena.copy(this.#head, this.#headOffset, count, into, what);
  }

  /** Text bytes of the oldest `count` values if their times ascend and equal `times`; undefined otherwise. */
  textBytesAt(times: Float64Array, count: number): number | undefined {
    return this.#span ? undefined : this.#arena.textBytesAt(this.#head, this.#headOffset, count, times);
  }

  /** Removes the oldest `count` points. Calls `visit` for their blocks, oldest first. */
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

  /** Remaining points of the oldest block. */
  get firstRun(): number {
    return this.#blocks.firstPoints;
  }

  wholeBlocks(count: number): number {
    return this.#blocks.whole(count);
  }

  /** Block number of each of the oldest `count` points. */
  blocks(count: number): Float64Array {
    const blocks = new Float64Array(count);
    this.#blocks.fill(blocks);
    return blocks;
  }

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

/** Hash of a time. A series sums the hashes, so that points can be removed again. `^` takes the low 32 bits. */
function hashOf(time: number): number {
  const high = (time / 0x1_0000_0000) | 0;
  const mixed = Math.imul(time ^ Math.imul(high, 0x9e3779b1), 0x85ebca6b);
  return Math.imul(mixed ^ (mixed >>> 15), 0xc2b2ae35);
}
