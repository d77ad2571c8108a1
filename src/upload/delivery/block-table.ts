// Blocks that have points in the window, by number.
import type { BlockId } from "../../core/block.ts";
import type { Lane } from "../../core/buffer.ts";
import type { InputId } from "../../core/point.ts";

export interface OpenBlock {
  readonly id: BlockId;
  readonly number: number;
  readonly inputs: readonly InputId[];
  /** When it was taken, on the monotonic clock in milliseconds. */
  readonly since: number;
  /** Series of it that have points here, those in the log included. */
  series: number;
  /** Settled since the last `takeSettled`: a list of series that is shared with other blocks, and further lists. */
  settled: readonly InputId[] | undefined;
  more: (readonly InputId[])[] | undefined;
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

export class BlockTable {
  readonly #lanes = { live: new NumberedBlocks(firstNumber.live), backlog: new NumberedBlocks(firstNumber.backlog) };

  /** Number of the next block of the lane. */
  next(lane: Lane): number {
    return this.#lanes[lane].next;
  }

  add(lane: Lane, block: OpenBlock): void {
    this.#lanes[lane].add(block);
  }

  get(number: number): OpenBlock | undefined {
    return this.#laneOf(number).get(number);
  }

  delete(number: number): void {
    this.#laneOf(number).delete(number);
  }

  all(): OpenBlock[] {
    return [...this.#lanes.live.all(), ...this.#lanes.backlog.all()];
  }

  #laneOf(number: number): NumberedBlocks {
    return this.#lanes[number < firstNumber.live ? "backlog" : "live"];
  }
}

/** Blocks go about in their order, so that they stand in an array whose front moves on: a map takes several times as long. */
class NumberedBlocks {
  #blocks: (OpenBlock | undefined)[] = [];
  /** Number of the first one in the array. */
  #first: number;
  /** As many at its front are gone. */
  #gone = 0;

  constructor(first: number) {
    this.#first = first;
  }

  get next(): number {
    return this.#first + this.#blocks.length;
  }

  get(number: number): OpenBlock | undefined {
    return number < this.#first ? undefined : this.#blocks[number - this.#first];
  }

  add(block: OpenBlock): void {
    this.#blocks.push(block);
  }

  delete(number: number): void {
    const blocks = this.#blocks;
    blocks[number - this.#first] = undefined;
    while (this.#gone < blocks.length && blocks[this.#gone] === undefined) this.#gone++;
    if (this.#gone <= blocks.length / 2) return;
    this.#blocks = blocks.slice(this.#gone);
    this.#first += this.#gone;
    this.#gone = 0;
  }

  all(): OpenBlock[] {
    return this.#blocks.filter((block) => block !== undefined);
  }
}
