// Blocks with points in the window, by number.
import type { BlockId } from "../../core/block.ts";
import type { Lane } from "../../core/buffer.ts";
import type { InputId } from "../../core/point.ts";

export interface OpenBlock {
  readonly id: BlockId;
  readonly number: number;
  readonly inputs: readonly InputId[];
  /** When it was leased, in monotonic milliseconds. */
  readonly since: number;
  /** Series with points here, including those in the log. */
  series: number;
  /** Series settled since the last `takeSettled`: a list shared with other blocks, and further lists. */
  settled: readonly InputId[] | undefined;
  more: (readonly InputId[])[] | undefined;
  /** As `settled`, for series that had points outside the queues, and the number of refused points. */
  done: InputId[] | undefined;
  refused: number;
  progressed: boolean;
  /** Series with points outside the queues: extracted, unsendable, or waiting late points. */
  apart: Map<InputId, SeriesApart> | undefined;
  /** Some points were forgotten. Once none is left here, the block is released to the buffer. */
  forgotten: boolean;
  readonly late: boolean;
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

/** Blocks of a lane have consecutive numbers. Those of the backlog reach the live range only after years. */
const firstNumber = { live: 0, backlog: -(2 ** 31) } as const;

export class BlockTable {
  readonly #lanes = { live: new NumberedBlocks(firstNumber.live), backlog: new NumberedBlocks(firstNumber.backlog) };

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

/** An array whose start moves forward, since blocks leave roughly in order; a map takes several times as long. */
class NumberedBlocks {
  #blocks: (OpenBlock | undefined)[] = [];
  /** Number of the first array element. */
  #first: number;
  /** Number of deleted elements at the start. */
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
