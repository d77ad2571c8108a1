// Tracks blocks with points in the window, and the decisions on their series.
import type { Block, BlockId } from "../../core/block.ts";
import type { Lane, Settlement } from "../../core/buffer.ts";
import type { InputId } from "../../core/point.ts";
import { RepeatedList } from "../../lib/values/lists.ts";
import type { BlockVisit } from "../series/block-runs.ts";
import type { SeriesQueue } from "../series/series-queue.ts";

interface OpenBlock {
  readonly id: BlockId;
  readonly number: number;
  readonly inputs: readonly InputId[];
  /** When it was leased, in monotonic milliseconds. */
  readonly since: number;
  readonly late: boolean;
  /** Series with points here, including those in the log. */
  series: number;
  /** Series settled since the last `takeSettled`, in lists that other blocks share. */
  settled: (readonly InputId[])[];
  /** As `settled`, for series that had points outside the queues, and the number of refused points. */
  done: InputId[];
  refused: number;
  /** Series with points outside the queues: extracted, unsendable, or waiting late points. */
  apart: Map<InputId, SeriesApart> | undefined;
  /** Some points were forgotten. Once none is left here, the block is released to the buffer. */
  forgotten: boolean;
  /** Inputs that were forgotten individually. */
  returning: Set<InputId> | undefined;
}

/** A series of a block with undecided points outside its queue. */
interface SeriesApart {
  /** Undecided points outside the queue. */
  left: number;
  refused: number;
  /** Whether the queue holds further points of the series. */
  queued: boolean;
  /** Points were forgotten: the series is not settled, and will be leased again. */
  forgotten: boolean;
}

/** Identifies a block by its number while the window holds points of it. */
export class OpenBlocks {
  /** Blocks of a lane have consecutive numbers. Those of the backlog reach the live range only after years. */
  readonly #next = { live: 0, backlog: -(2 ** 31) };
  readonly #blocks = new Map<number, OpenBlock>();
  /** Blocks with series settled since the last `takeSettled`, except those in the log. */
  readonly #progressed = new Set<OpenBlock>();
  /** Series settled from a queue, but still counted here. */
  readonly #log = new SettledLog();
  #released: BlockId[] = [];
  #settling: InputId | undefined;
  /** Number of blocks with points outside the queues. */
  #withApart = 0;

  /** Returns the number of the block. Settles a block without series at once. */
  open(lane: Lane, block: Block, since: number): number {
    const number = this.#next[lane]++;
    const open: OpenBlock = {
      id: block.id,
      number,
      inputs: block.inputs,
      since,
      late: block.isLate,
      series: block.inputs.length,
      settled: [],
      done: [],
      refused: 0,
      apart: undefined,
      forgotten: false,
      returning: undefined,
    };
    this.#blocks.set(number, open);
    if (open.series === 0) {
      this.#progressed.add(open);
      this.#close(open);
    }
    return number;
  }

  /** A series of a new block has `queued` of `all` points in its queue. The others are undecided. */
  opened(number: number, input: InputId, all: number, queued: number): void {
    if (queued < all) this.setApart(number, input, all - queued, queued === 0);
    else if (queued === 0) this.leave(number, input);
  }

  /** When the block was leased, in monotonic milliseconds. */
  since(number: number): number {
    return this.#blocks.get(number)?.since ?? 0;
  }

  /** The oldest `count` points of `queue` are stored and leave it. */
  settle(queue: SeriesQueue, count: number): void {
    this.#settling = queue.input;
    queue.drop(count, this.#settled);
  }

  /** One callback for all series: a closure for each would allocate too many objects. */
  readonly #settled: BlockVisit = (first, blocks, _points, last) => {
    const input = this.#settling;
    if (!last || input === undefined) return;
    if (this.#withApart === 0) this.#log.add(input, first, blocks);
    else
      for (let number = first; number < first + blocks; number++)
        if (this.#blocks.get(number)?.apart) this.leave(number, input);
        else this.#log.add(input, number, 1);
  };

  /** Points left the queue undecided. `last`: it holds no further point of the block. */
  setApart(number: number, input: InputId, points: number, last: boolean): void {
    const open = this.#blocks.get(number);
    if (!open) return;
    const apart = open.apart?.get(input) ?? { left: 0, refused: 0, queued: true, forgotten: false };
    apart.left += points;
    apart.queued = !last;
    if (!open.apart) {
      open.apart = new Map();
      this.#withApart++;
    }
    open.apart.set(input, apart);
  }

  /** An undecided point returned to its queue. */
  putBack(number: number, input: InputId): void {
    const apart = this.#blocks.get(number)?.apart?.get(input);
    if (apart) Object.assign(apart, { left: apart.left - 1, queued: true });
  }

  /** The queue of `input` holds no further point of the block. */
  leave(number: number, input: InputId, forgotten = false): void {
    const open = this.#blocks.get(number);
    if (!open) return;
    const apart = open.apart?.get(input);
    if (apart) apart.queued = false;
    if (!apart || apart.left === 0) this.#finish(open, input, forgotten);
  }

  /** Points outside the queue were stored or refused. */
  decide(number: number, input: InputId, points: number, refused: boolean): void {
    const open = this.#blocks.get(number);
    const apart = open?.apart?.get(input);
    if (!open || !apart) return;
    apart.left -= points;
    if (refused) apart.refused += points;
    if (apart.left === 0 && !apart.queued) this.#finish(open, input);
  }

  /** Returns points outside the queue to the buffer. `isSingle`: for their input, not with a whole lane. */
  forgetApart(number: number, input: InputId, points: number, isSingle: boolean): void {
    const apart = this.#blocks.get(number)?.apart?.get(input);
    if (!apart) return;
    apart.forgotten = true;
    this.#forget(number, input, isSingle);
    this.decide(number, input, points, false);
  }

  /** Returns points of the queue to the buffer. `last`: it holds no further point of the block. */
  forgetQueued(number: number, input: InputId, last: boolean, isSingle: boolean): void {
    this.#forget(number, input, isSingle);
    const apart = this.#blocks.get(number)?.apart?.get(input);
    if (apart) apart.forgotten = true;
    if (last) this.leave(number, input, true);
  }

  /** Whether points of `input` return to the buffer once their blocks have no other points here. */
  isReturning(input: InputId): boolean {
    this.#applyLog();
    return this.#blocks.values().some(({ returning }) => returning?.has(input) === true);
  }

  /** Whether points of the open block return to the buffer, once its other points are decided on or returned. */
  isForgotten = (number: number): boolean => this.#blocks.get(number)?.forgotten === true;

  get hasForgotten(): boolean {
    return this.#blocks.values().some(({ forgotten }) => forgotten);
  }

  get hasLate(): boolean {
    this.#applyLog();
    return this.#blocks.values().some(({ late }) => late);
  }

  takeSettled(): Settlement[] {
    this.#applyLog();
    const settlements = Array.from(this.#progressed, (open): Settlement => {
      const { id: block, settled, done, refused } = open;
      const all = settled.length === 1 && done.length === 0 ? settled[0]! : [...settled, done].flat();
      const inputs = all.length === open.inputs.length ? open.inputs : all;
      open.settled = [];
      open.done = [];
      open.refused = 0;
      return refused > 0 ? { block, inputs, refused } : { block, inputs };
    });
    this.#progressed.clear();
    return settlements;
  }

  get hasReleased(): boolean {
    this.#applyLog();
    return this.#released.length > 0;
  }

  takeReleased(): BlockId[] {
    this.#applyLog();
    return this.#released.splice(0);
  }

  ids(): BlockId[] {
    this.#applyLog();
    return Array.from(this.#blocks.values(), ({ id }) => id);
  }

  /** Settles the entries of the log by block instead of by point. */
  #applyLog(): void {
    for (const { first, blocks, inputs: list } of this.#log.take()) {
      const inputs = list.take();
      for (let number = first; number < first + blocks; number++) {
        const open = this.#blocks.get(number);
        if (!open) continue;
        open.settled.push(inputs);
        this.#progressed.add(open);
        open.series -= inputs.length;
        if (open.series === 0) this.#close(open);
      }
    }
  }

  #forget(number: number, input: InputId, isSingle: boolean): void {
    const open = this.#blocks.get(number);
    if (!open) return;
    open.forgotten = true;
    if (isSingle) (open.returning ??= new Set()).add(input);
  }

  /** No point of this series of the block is left here. */
  #finish(open: OpenBlock, input: InputId, forgotten = false): void {
    const apart = open.apart?.get(input);
    if (!forgotten && apart?.forgotten !== true) {
      open.done.push(input);
      open.refused += apart?.refused ?? 0;
      this.#progressed.add(open);
    }
    if (open.apart?.delete(input) && open.apart.size === 0) {
      open.apart = undefined;
      this.#withApart--;
    }
    if (--open.series === 0) this.#close(open);
  }

  #close(open: OpenBlock): void {
    if (open.forgotten) this.#released.push(open.id);
    this.#blocks.delete(open.number);
  }
}

/** Series settled in `blocks` consecutive blocks, starting with number `first`. */
interface SettledRange {
  readonly first: number;
  readonly blocks: number;
  readonly inputs: RepeatedList<InputId>;
}

/** Lists kept for the next request. */
const keptLists = 4;

/**
 * Log of settled series by ranges of blocks. A request settles thousands of series in hundreds of blocks, usually all of
 * them in the same blocks.
 */
class SettledLog {
  /** First block and number of blocks in one number → entry. */
  readonly #ranges = new Map<number, SettledRange>();
  /** Lists of the first entries, which requests of polled series repeat. */
  readonly #lists: RepeatedList<InputId>[] = [];
  /** Entry of the last series, which the next one usually shares. */
  #last: SettledRange | undefined;

  add(input: InputId, first: number, blocks: number): void {
    let range = this.#last;
    if (range?.first !== first || range.blocks !== blocks) {
      const key = blocks * 2 ** 32 + first;
      range = this.#ranges.get(key) ?? { first, blocks, inputs: this.#list() };
      this.#ranges.set(key, range);
      this.#last = range;
    }
    range.inputs.add(input);
  }

  take(): readonly SettledRange[] {
    const ranges = Array.from(this.#ranges.values());
    this.#ranges.clear();
    this.#last = undefined;
    return ranges;
  }

  #list(): RepeatedList<InputId> {
    const at = this.#ranges.size;
    return at < keptLists ? (this.#lists[at] ??= new RepeatedList()) : new RepeatedList();
  }
}
