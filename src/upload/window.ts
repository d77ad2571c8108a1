// The unsettled points by series, bounded in memory, and which blocks of the buffer they came in.
import type { Block, BlockId, Lane, Settlement } from "../core/buffer.ts";
import type { InputId } from "../core/point.ts";
import type { Steps } from "../lib/in-slices.ts";
import { numberForm, scaledNumber } from "./number-text.ts";
import { PointArena } from "./point-arena.ts";
import { PortionColumn } from "./portion.ts";
import { SeriesQueue } from "./series-queue.ts";
import { isWritableTime } from "./time-text.ts";

/** A point that cannot be sent at all, and why. */
export interface Unsendable {
  readonly input: InputId;
  readonly time: number;
  readonly value: number;
  readonly reason: string;
  /** Slot of the block that it came in. */
  readonly slot: number;
}

interface OpenBlock {
  readonly id: BlockId;
  readonly inputs: readonly InputId[];
  /** When it was taken, on the monotonic clock in milliseconds. */
  readonly since: number;
  /** Points that are neither stored by the service nor refused. */
  left: number;
  refused: number;
  /** Some of its points were forgotten: it is given back when nothing of it is left here. */
  forgotten: boolean;
}

/** Holds what was taken from the buffer. A block is settled when all its points are; until then a restart brings it again. */
export class Window {
  readonly #arena: PointArena;
  readonly #queues: Readonly<Record<Lane, Map<InputId, SeriesQueue>>> = { live: new Map(), backlog: new Map() };
  readonly #points: Record<Lane, number> = { live: 0, backlog: 0 };
  /** Slot → block. */
  readonly #blocks: (OpenBlock | undefined)[] = [];
  readonly #freeSlots: number[] = [];
  #settled: Settlement[] = [];
  #released: BlockId[] = [];
  #lastInputs: readonly InputId[] = [];

  /** 21 bytes a point, touched only as they are needed. */
  constructor(capacity: number) {
    this.#arena = new PointArena(capacity);
  }

  /** Points that fit for certain, even if each is of another series. */
  get room(): number {
    return this.#arena.freeSegments;
  }

  points(lane: Lane): number {
    return this.#points[lane];
  }

  queues(lane: Lane): Iterable<SeriesQueue> {
    return this.#queues[lane].values();
  }

  /** When the oldest point of a queue that is not empty was taken, on the monotonic clock in milliseconds. */
  since(queue: SeriesQueue): number {
    return this.#blocks[queue.firstBlock]?.since ?? 0;
  }

  /** Copies a block into the window. What cannot be written as JSON is returned, and is unsettled until `settleUnsendable`. */
  add(lane: Lane, block: Block, since: number): Unsendable[] {
    const open: OpenBlock = {
      id: block.id,
      inputs: this.#inputsOf(block),
      since,
      left: 0,
      refused: 0,
      forgotten: false,
    };
    const slot = this.#freeSlots.pop() ?? this.#blocks.length;
    this.#blocks[slot] = open;
    const unsendable: Unsendable[] = [];
    for (const { input, times, values } of block.series) {
      let queue = this.#queues[lane].get(input);
      if (!queue) this.#queues[lane].set(input, (queue = new SeriesQueue(lane, input, this.#arena)));
      for (let i = 0; i < times.length; i++) {
        const time = times[i] ?? Number.NaN;
        const value = values[i] ?? Number.NaN;
        const form = numberForm(value);
        if (form !== 0 && isWritableTime(time)) {
          queue.append(time, scaledNumber(value, form), form, slot);
          open.left++;
        } else {
          const reason = form === 0 ? "value is not a finite number" : "time is outside the years 1 to 9999";
          unsendable.push({ input, time, value, reason, slot });
        }
      }
    }
    this.#points[lane] += open.left;
    open.left += unsendable.length;
    if (open.left === 0) this.#close(slot, open);
    return unsendable;
  }

  /** The service has the oldest `count` points of `queue`. */
  settle(queue: SeriesQueue, count: number): void {
    this.#points[queue.lane] -= count;
    queue.drop(count, (slot, points) => this.#settleIn(slot, points, 0));
  }

  /** Takes the oldest `count` points of `queue` out; they stay unsettled until `settleExtracted`. */
  extract(queue: SeriesQueue, count: number): PortionColumn {
    const { times, values, slots } = queue.copy(count);
    this.#points[queue.lane] -= count;
    queue.drop(count, () => {});
    return new PortionColumn(queue.input, times, values, slots);
  }

  /** Points that were taken out are stored, or refused for good. */
  settleExtracted({ slots }: PortionColumn, refused: boolean): void {
    for (const slot of slots) this.#settleIn(slot, 1, refused ? 1 : 0);
  }

  /** Points that cannot be sent count as refused for good. */
  settleUnsendable(unsendable: readonly Unsendable[]): void {
    for (const { slot } of unsendable) this.#settleIn(slot, 1, 1);
  }

  /** What was settled since the last call. */
  takeSettled(): Settlement[] {
    const settled = this.#settled;
    this.#settled = [];
    return settled;
  }

  /** Forgets the points of a lane, except those taken out: their blocks go back to the buffer. */
  *forget(lane: Lane): Steps<void> {
    for (const queue of this.#queues[lane].values()) {
      yield queue.count;
      queue.drop(queue.count, (slot, points) => {
        const open = this.#blocks[slot];
        if (!open) return;
        open.left -= points;
        open.forgotten = true;
        if (open.left === 0) this.#close(slot, open);
      });
    }
    this.#queues[lane].clear();
    this.#points[lane] = 0;
  }

  /** Blocks to give back to the buffer since the last call. */
  takeReleased(): BlockId[] {
    const released = this.#released;
    this.#released = [];
    return released;
  }

  /** All blocks that are not settled: what to give back at the end. */
  open(): BlockId[] {
    return [...new Set(this.#blocks.flatMap((open) => (open ? [open.id] : [])))];
  }

  #settleIn(slot: number, points: number, refused: number): void {
    const open = this.#blocks[slot];
    if (!open) return;
    open.left -= points;
    open.refused += refused;
    if (open.left === 0) this.#close(slot, open);
  }

  #close(slot: number, { id, inputs, refused, forgotten }: OpenBlock): void {
    if (forgotten) this.#released.push(id);
    else this.#settled.push(refused > 0 ? { block: id, inputs, refused } : { block: id, inputs });
    this.#blocks[slot] = undefined;
    this.#freeSlots.push(slot);
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
