// Which blocks of the buffer have points in the window, and what is decided of each of their series.
import type { Block, BlockId, Settlement } from "../../core/buffer.ts";
import type { InputId } from "../../core/point.ts";
import type { SeriesQueue } from "../series/series-queue.ts";
import { SettledLog } from "./settled-log.ts";

interface OpenBlock {
  readonly id: BlockId;
  readonly slot: number;
  readonly inputs: readonly InputId[];
  /** When it was taken, on the monotonic clock in milliseconds. */
  readonly since: number;
  /** Series of it that have points here. */
  series: number;
  /** Of `series`, those at the last `takeSettled`, less those that left since and are not in the log. */
  before: number;
  /** Since the last `takeSettled`: settled series that are not in the log, and how many points the service refused. */
  done: InputId[] | undefined;
  refused: number;
  /** It is one of `#progressed`. */
  progressed: boolean;
  /** Series of which points are outside the queues: extracted, unsendable, or late ones that wait. */
  apart: Map<InputId, SeriesApart> | undefined;
  /** Some of its points were forgotten: the buffer gets the block back when nothing of it is left here. */
  forgotten: boolean;
  /** It has late points. */
  readonly late: boolean;
  /** Inputs that were forgotten one by one. */
  returning: Set<InputId> | undefined;
}

/** A series of a block of which some points left the queue undecided. */
interface SeriesApart {
  /** Points outside the queue that are undecided. */
  left: number;
  refused: number;
  /** The queue holds further points of it. */
  queued: boolean;
  /** Points of it were forgotten: it is not settled, and comes again. */
  forgotten: boolean;
}

/** A block is known by its slot while points of it are in the window. */
export class OpenBlocks {
  /** Slot → block. */
  readonly #blocks: (OpenBlock | undefined)[] = [];
  readonly #freeSlots: number[] = [];
  /** Blocks of which series were settled since the last `takeSettled`, and the series that were settled from a queue. */
  #progressed: OpenBlock[] = [];
  readonly #log = new SettledLog();
  /** Of blocks that were closed since: the log names them. */
  readonly #closedSlots: number[] = [];
  #released: BlockId[] = [];
  #lastInputs: readonly InputId[] = [];

  /** Gives the slot. A block without series is settled at once. */
  open(block: Block, since: number): number {
    const slot = this.#freeSlots.pop() ?? this.#blocks.length;
    const open: OpenBlock = {
      id: block.id,
      slot,
      inputs: this.#inputsOf(block),
      since,
      series: block.series.length,
      before: block.series.length,
      done: undefined,
      refused: 0,
      progressed: false,
      apart: undefined,
      forgotten: false,
      late: block.series.some(({ late }) => late === true),
      returning: undefined,
    };
    this.#blocks[slot] = open;
    if (block.series.length === 0) this.#close(open);
    return slot;
  }

  /** Of a series of a new block, so many of all its points are in its queue; the others are undecided outside of it. */
  opened(slot: number, input: InputId, all: number, queued: number): void {
    if (queued < all) this.setApart(slot, input, all - queued, queued === 0);
    else if (queued === 0) this.leave(slot, input);
  }

  /** When the block was taken, on the monotonic clock in milliseconds. */
  since(slot: number): number {
    return this.#blocks[slot]?.since ?? 0;
  }

  /** The service has the oldest `count` points of `queue`, which leave it. */
  settle(queue: SeriesQueue, count: number): void {
    const blocks = this.#blocks;
    const slots = this.#log.slots(count);
    let end = this.#log.count;
    queue.drop(count, (slot, _points, last) => {
      if (!last) return;
      const open = blocks[slot];
      if (!open || open.apart) {
        this.leave(slot, queue.input);
        return;
      }
      slots[end++] = slot;
      if (!open.progressed) this.#noteProgress(open);
      if (--open.series === 0) this.#close(open);
    });
    this.#log.endSeries(queue.input, end);
  }

  /** Points left the queue undecided; `last`: it holds no further point of that block. */
  setApart(slot: number, input: InputId, points: number, last: boolean): void {
    const open = this.#blocks[slot];
    if (!open) return;
    const apart = open.apart?.get(input) ?? { left: 0, refused: 0, queued: true, forgotten: false };
    apart.left += points;
    apart.queued = !last;
    (open.apart ??= new Map()).set(input, apart);
  }

  /** An undecided point is in its queue again. */
  putBack(slot: number, input: InputId): void {
    const apart = this.#blocks[slot]?.apart?.get(input);
    if (apart) Object.assign(apart, { left: apart.left - 1, queued: true });
  }

  /** The queue of `input` holds no further point of that block. */
  leave(slot: number, input: InputId, forgotten = false): void {
    const open = this.#blocks[slot];
    if (!open) return;
    const apart = open.apart?.get(input);
    if (apart) apart.queued = false;
    if (!apart || apart.left === 0) this.#finish(open, input, forgotten);
  }

  /** Points outside the queue are stored or refused. */
  decide(slot: number, input: InputId, points: number, refused: boolean): void {
    const open = this.#blocks[slot];
    const apart = open?.apart?.get(input);
    if (!open || !apart) return;
    apart.left -= points;
    if (refused) apart.refused += points;
    if (apart.left === 0 && !apart.queued) this.#finish(open, input);
  }

  /** Points outside the queue go back to the buffer. `isSingle`: because of their input, not with all of a lane. */
  forgetApart(slot: number, input: InputId, points: number, isSingle: boolean): void {
    const apart = this.#blocks[slot]?.apart?.get(input);
    if (!apart) return;
    apart.forgotten = true;
    this.#forget(slot, input, isSingle);
    this.decide(slot, input, points, false);
  }

  /** Points of the queue go back to the buffer; `last`: it holds no further point of that block. */
  forgetQueued(slot: number, input: InputId, last: boolean, isSingle: boolean): void {
    this.#forget(slot, input, isSingle);
    const apart = this.#blocks[slot]?.apart?.get(input);
    if (apart) apart.forgotten = true;
    if (last) this.leave(slot, input, true);
  }

  /** Whether points of `input` go back to the buffer as soon as nothing else of their blocks is here. */
  isReturning(input: InputId): boolean {
    return this.#blocks.some((open) => open?.returning?.has(input));
  }

  get hasLate(): boolean {
    return this.#blocks.some((open) => open?.late);
  }

  /** What was settled since the last call. */
  takeSettled(): Settlement[] {
    const settled: Settlement[] = [];
    const lists = new Map<number, InputId[]>();
    for (const open of this.#progressed) {
      const { id: block, slot, done = [], refused } = open;
      const isWhole = open.before - open.series === open.inputs.length;
      if (!isWhole) lists.set(slot, done);
      const inputs = isWhole ? open.inputs : done;
      settled.push(refused > 0 ? { block, inputs, refused } : { block, inputs });
      open.before = open.series;
      open.done = undefined;
      open.refused = 0;
      open.progressed = false;
    }
    this.#log.collect(lists);
    this.#log.clear();
    this.#progressed = [];
    for (const slot of this.#closedSlots.splice(0)) this.#freeSlots.push(slot);
    return settled;
  }

  get hasReleased(): boolean {
    return this.#released.length > 0;
  }

  /** Blocks to give back to the buffer since the last call. */
  takeReleased(): BlockId[] {
    return this.#released.splice(0);
  }

  /** All blocks that are not settled. */
  ids(): BlockId[] {
    return [...new Set(this.#blocks.flatMap((open) => (open ? [open.id] : [])))];
  }

  #forget(slot: number, input: InputId, isSingle: boolean): void {
    const open = this.#blocks[slot];
    if (!open) return;
    open.forgotten = true;
    if (isSingle) (open.returning ??= new Set()).add(input);
  }

  /** Nothing of this series of the block is left here. */
  #finish(open: OpenBlock, input: InputId, forgotten = false): void {
    const apart = open.apart?.get(input);
    if (!forgotten && apart?.forgotten !== true) {
      (open.done ??= []).push(input);
      open.refused += apart?.refused ?? 0;
      this.#noteProgress(open);
    }
    open.apart?.delete(input);
    if (open.apart?.size === 0) open.apart = undefined;
    open.series--;
    open.before--;
    if (open.series === 0) this.#close(open);
  }

  #noteProgress(open: OpenBlock): void {
    if (open.progressed) return;
    open.progressed = true;
    this.#progressed.push(open);
  }

  #close(open: OpenBlock): void {
    // A block without series has nothing that could be settled one by one.
    if (open.inputs.length === 0) this.#noteProgress(open);
    if (open.forgotten) this.#released.push(open.id);
    this.#blocks[open.slot] = undefined;
    this.#closedSlots.push(open.slot);
  }

  /** Blocks of polled tags have the same inputs again and again: one list serves them all. */
  #inputsOf(block: Block): readonly InputId[] {
    const same =
      block.series.length === this.#lastInputs.length &&
      block.series.every(({ input }, i) => input === this.#lastInputs[i]);
    if (!same) this.#lastInputs = block.series.map(({ input }) => input);
    return this.#lastInputs;
  }
}
