// Tracks blocks with points in the window, and the decisions on their series.
import type { Block, BlockId } from "../../core/block.ts";
import type { Lane, Settlement } from "../../core/buffer.ts";
import type { InputId } from "../../core/point.ts";
import { RepeatedList } from "../../lib/values/lists.ts";
import type { BlockVisit } from "../series/block-runs.ts";
import type { SeriesQueue } from "../series/series-queue.ts";
import { BlockTable, type OpenBlock } from "./block-table.ts";

/** Identifies a block by its number while the window holds points of it. */
export class OpenBlocks {
  readonly #blocks = new BlockTable();
  /** Blocks with series settled since the last `takeSettled`, except those in the log. */
  #progressed: OpenBlock[] = [];
  /** Series settled from a queue, but still counted here. */
  readonly #log = new SettledLog();
  #released: BlockId[] = [];
  #settling: InputId | undefined;
  /** Number of blocks with points outside the queues. */
  #withApart = 0;

  /** Returns the number of the block. Settles a block without series at once. */
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
    return this.#blocks.all().some(({ returning }) => returning?.has(input) === true);
  }

  get hasLate(): boolean {
    this.#applyLog();
    return this.#blocks.all().some(({ late }) => late);
  }

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

  takeReleased(): BlockId[] {
    this.#applyLog();
    return this.#released.splice(0);
  }

  ids(): BlockId[] {
    this.#applyLog();
    return this.#blocks.all().map(({ id }) => id);
  }

  /** Settles the entries of the log by block instead of by point. */
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

  /** No point of this series of the block is left here. */
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

/** Series settled in `blocks` consecutive blocks, starting with number `first`. */
interface SettledRange {
  readonly first: number;
  readonly blocks: number;
  readonly inputs: readonly InputId[];
}

interface OpenRange extends Omit<SettledRange, "inputs"> {
  readonly inputs: RepeatedList<InputId>;
}

/** Lists kept for the next request. */
const keptLists = 4;

/**
 * Log of settled series by ranges of blocks. A request settles thousands of series in hundreds of blocks, usually all of
 * them in the same blocks.
 */
class SettledLog {
  /** First block → number of blocks → entry. */
  readonly #ranges = new Map<number, Map<number, OpenRange>>();
  /** Lists of the first entries, which requests of polled series repeat. */
  readonly #lists: RepeatedList<InputId>[] = [];
  #entries = 0;
  /** Entry of the last series, which the next one usually shares. */
  #last: OpenRange | undefined;

  add(input: InputId, first: number, blocks: number): void {
    let range = this.#last;
    if (range?.first !== first || range.blocks !== blocks) {
      const sameFirst = this.#ranges.get(first) ?? new Map<number, OpenRange>();
      this.#ranges.set(first, sameFirst);
      range = sameFirst.get(blocks) ?? { first, blocks, inputs: this.#list() };
      sameFirst.set(blocks, range);
      this.#last = range;
    }
    range.inputs.add(input);
  }

  take(): SettledRange[] {
    if (!this.#last) return [];
    const all = [...this.#ranges.values()].flatMap((sameFirst) => [...sameFirst.values()]);
    this.#ranges.clear();
    this.#last = undefined;
    this.#entries = 0;
    return all.map(({ first, blocks, inputs }) => ({ first, blocks, inputs: inputs.take() }));
  }

  #list(): RepeatedList<InputId> {
    const at = this.#entries++;
    return at < keptLists ? (this.#lists[at] ??= new RepeatedList()) : new RepeatedList();
  }
}
