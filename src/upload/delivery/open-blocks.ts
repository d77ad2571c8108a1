// Which blocks of the buffer have points in the window, and what is decided of each of their series.
import type { Block, BlockId } from "../../core/block.ts";
import type { Lane, Settlement } from "../../core/buffer.ts";
import type { InputId } from "../../core/point.ts";
import type { BlockVisit } from "../series/block-runs.ts";
import type { SeriesQueue } from "../series/series-queue.ts";
import { SettledLog } from "./settled-log.ts";

interface OpenBlock {
  readonly id: BlockId;
  readonly number: number;
  readonly inputs: readonly InputId[];
  /** When it was taken, on the monotonic clock in milliseconds. */
  readonly since: number;
  /** Series of it that have points here, those in the log included. */
  series: number;
  /** Since the last `takeSettled`: lists of settled series, shared with other blocks. */
  settled: (readonly InputId[])[];
  /** The same for series that had points apart, and how many points the service refused. */
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

/** Blocks of a lane are numbered one after the other. Those of the backlog come as far as the live lane begins after years. */
const firstNumber = { live: 0, backlog: -(2 ** 31) } as const;

/** A block is known by its number while points of it are in the window. */
export class OpenBlocks {
  readonly #blocks = new Map<number, OpenBlock>();
  readonly #next: Record<Lane, number> = { ...firstNumber };
  /** Blocks of which series were settled since the last `takeSettled`, but for those in the log. */
  #progressed: OpenBlock[] = [];
  /** Series that were settled from a queue, and are still counted as here. */
  readonly #log = new SettledLog();
  #released: BlockId[] = [];
  #settling: InputId | undefined;
  /** Blocks with points apart. */
  #withApart = 0;

  /** Gives the number. A block without series is settled at once. */
  open(lane: Lane, block: Block, since: number): number {
    const number = this.#next[lane]++;
    const open: OpenBlock = {
      id: block.id,
      number,
      inputs: block.inputs,
      since,
      series: block.inputs.length,
      settled: [],
      done: undefined,
      refused: 0,
      progressed: false,
      apart: undefined,
      forgotten: false,
      late: block.isLate,
      returning: undefined,
    };
    this.#blocks.set(number, open);
    if (open.series === 0) {
      this.#noteProgress(open);
      this.#close(open);
    }
    return number;
  }

  /** Of a series of a new block, so many of all its points are in its queue; the others are undecided outside of it. */
  opened(number: number, input: InputId, all: number, queued: number): void {
    if (queued < all) this.setApart(number, input, all - queued, queued === 0);
    else if (queued === 0) this.leave(number, input);
  }

  /** When the block was taken, on the monotonic clock in milliseconds. */
  since(number: number): number {
    return this.#blocks.get(number)?.since ?? 0;
  }

  /** The service has the oldest `count` points of `queue`, which leave it. */
  settle(queue: SeriesQueue, count: number): void {
    this.#settling = queue.input;
    queue.drop(count, this.#settled);
  }

  /** One for all series: there are as many as points, where blocks have one point of each. */
  readonly #settled: BlockVisit = (first, blocks, _points, last) => {
    const input = this.#settling;
    if (!last || input === undefined) return;
    if (this.#withApart === 0) this.#log.add(input, first, blocks);
    else
      for (let number = first; number < first + blocks; number++)
        if (this.#blocks.get(number)?.apart) this.leave(number, input);
        else this.#log.add(input, number, 1);
  };

  /** Points left the queue undecided; `last`: it holds no further point of that block. */
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

  /** An undecided point is in its queue again. */
  putBack(number: number, input: InputId): void {
    const apart = this.#blocks.get(number)?.apart?.get(input);
    if (apart) Object.assign(apart, { left: apart.left - 1, queued: true });
  }

  /** The queue of `input` holds no further point of that block. */
  leave(number: number, input: InputId, forgotten = false): void {
    const open = this.#blocks.get(number);
    if (!open) return;
    const apart = open.apart?.get(input);
    if (apart) apart.queued = false;
    if (!apart || apart.left === 0) this.#finish(open, input, forgotten);
  }

  /** Points outside the queue are stored or refused. */
  decide(number: number, input: InputId, points: number, refused: boolean): void {
    const open = this.#blocks.get(number);
    const apart = open?.apart?.get(input);
    if (!open || !apart) return;
    apart.left -= points;
    if (refused) apart.refused += points;
    if (apart.left === 0 && !apart.queued) this.#finish(open, input);
  }

  /** Points outside the queue go back to the buffer. `isSingle`: because of their input, not with all of a lane. */
  forgetApart(number: number, input: InputId, points: number, isSingle: boolean): void {
    const apart = this.#blocks.get(number)?.apart?.get(input);
    if (!apart) return;
    apart.forgotten = true;
    this.#forget(number, input, isSingle);
    this.decide(number, input, points, false);
  }

  /** Points of the queue go back to the buffer; `last`: it holds no further point of that block. */
  forgetQueued(number: number, input: InputId, last: boolean, isSingle: boolean): void {
    this.#forget(number, input, isSingle);
    const apart = this.#blocks.get(number)?.apart?.get(input);
    if (apart) apart.forgotten = true;
    if (last) this.leave(number, input, true);
  }

  /** Whether points of `input` go back to the buffer as soon as nothing else of their blocks is here. */
  isReturning(input: InputId): boolean {
    this.#applyLog();
    return this.#blocks.values().some(({ returning }) => returning?.has(input) === true);
  }

  get hasLate(): boolean {
    this.#applyLog();
    return this.#blocks.values().some(({ late }) => late);
  }

  /** What was settled since the last call. */
  takeSettled(): Settlement[] {
    this.#applyLog();
    const settled = this.#progressed.map((open): Settlement => {
      const { id: block, done, refused } = open;
      const lists = done ? [...open.settled, done] : open.settled;
      const count = lists.reduce((sum, { length }) => sum + length, 0);
      const [first = []] = lists;
      const inputs = count === open.inputs.length ? open.inputs : lists.length === 1 ? first : lists.flat();
      open.settled = [];
      open.done = undefined;
      open.refused = 0;
      open.progressed = false;
      return refused > 0 ? { block, inputs, refused } : { block, inputs };
    });
    this.#progressed = [];
    return settled;
  }

  get hasReleased(): boolean {
    this.#applyLog();
    return this.#released.length > 0;
  }

  /** Blocks to give back to the buffer since the last call. */
  takeReleased(): BlockId[] {
    this.#applyLog();
    return this.#released.splice(0);
  }

  /** All blocks that are not settled. */
  ids(): BlockId[] {
    this.#applyLog();
    return Array.from(this.#blocks.values(), ({ id }) => id);
  }

  /** What stands in the log is settled block by block rather than point by point. */
  #applyLog(): void {
    for (const { first, blocks, inputs } of this.#log.take())
      for (let number = first; number < first + blocks; number++) {
        const open = this.#blocks.get(number);
        if (!open) continue;
        open.settled.push(inputs);
        this.#noteProgress(open);
        open.series -= inputs.length;
        if (open.series === 0) this.#close(open);
      }
  }

  #forget(number: number, input: InputId, isSingle: boolean): void {
    const open = this.#blocks.get(number);
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
    if (open.apart?.delete(input) && open.apart.size === 0) {
      open.apart = undefined;
      this.#withApart--;
    }
    if (--open.series === 0) this.#close(open);
  }

  #noteProgress(open: OpenBlock): void {
    if (open.progressed) return;
    open.progressed = true;
    this.#progressed.push(open);
  }

  #close(open: OpenBlock): void {
    if (open.forgotten) this.#released.push(open.id);
    this.#blocks.delete(open.number);
  }
}
