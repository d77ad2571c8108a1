// Which blocks of the buffer have points in the window, and what is decided of each of their series.
import type { Block, BlockId } from "../../core/block.ts";
import type { Lane, Settlement } from "../../core/buffer.ts";
import type { InputId } from "../../core/point.ts";
import type { BlockVisit } from "../series/block-runs.ts";
import type { SeriesQueue } from "../series/series-queue.ts";
import { BlockTable, type OpenBlock } from "./block-table.ts";
import { SettledLog } from "./settled-log.ts";

/** A block is known by its number while points of it are in the window. */
export class OpenBlocks {
  readonly #blocks = new BlockTable();
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
    const number = this.#blocks.next(lane);
    const open: OpenBlock = {
      id: block.id,
      number,
      inputs: block.inputs,
      since,
      series: block.inputs.length,
      settled: undefined,
      more: undefined,
      done: undefined,
      refused: 0,
      progressed: false,
      apart: undefined,
      forgotten: false,
      late: block.isLate,
      returning: undefined,
    };
    this.#blocks.add(lane, open);
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

  /** One callback for all series. A closure for each would cost as many objects as points where series have one point. */
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
    return this.#blocks.all().some(({ returning }) => returning?.has(input) === true);
  }

  get hasLate(): boolean {
    this.#applyLog();
    return this.#blocks.all().some(({ late }) => late);
  }

  /** What was settled since the last call. */
  takeSettled(): Settlement[] {
    this.#applyLog();
    const settled = this.#progressed.map((open): Settlement => {
      const { id: block, settled: list = [], more, done = [], refused } = open;
      const settledInputs = more || done.length > 0 ? [list, ...(more ?? []), done].flat() : list;
      const inputs = settledInputs.length === open.inputs.length ? open.inputs : settledInputs;
      open.settled = undefined;
      open.more = undefined;
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
    return this.#blocks.all().map(({ id }) => id);
  }

  /** What stands in the log is settled block by block rather than point by point. */
  #applyLog(): void {
    for (const { first, blocks, inputs } of this.#log.take())
      for (let number = first; number < first + blocks; number++) {
        const open = this.#blocks.get(number);
        if (!open) continue;
        if (open.settled) (open.more ??= []).push(inputs);
        else open.settled = inputs;
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
