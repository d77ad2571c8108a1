// Unsettled points by series, in bounded memory, and their blocks of the buffer.
import type { Block, BlockId } from "../../core/block.ts";
import type { Lane, Settlement } from "../../core/buffer.ts";
import type { InputId } from "../../core/point.ts";
import type { Steps } from "../../lib/flow/in-slices.ts";
import { RepeatedList } from "../../lib/values/lists.ts";
import { LateOrder } from "../series/late-order.ts";
import { isWritableTime, numberForm, scaledNumber } from "../series/number-text.ts";
import { PointArena } from "../series/point-memory.ts";
import { SeriesQueue } from "../series/series-queue.ts";
import { OpenBlocks } from "./open-blocks.ts";
import { SubBatchColumn } from "./sub-batch.ts";

export interface Unsendable {
  readonly input: InputId;
  readonly time: number;
  readonly value: number;
  readonly reason: string;
  /** Number of its block. */
  readonly number: number;
}

/**
 * Empty queues of the live lane that are always kept. Above this, queues are removed that got no points while
 * `blocksUntilUnused` blocks were leased. A burst of many inputs must not retain 300 bytes each, but polled inputs need
 * their queue every second. The backlog lane keeps none, since most inputs have no backlog for days.
 */
const keptQueues = 4_096;
const blocksUntilUnused = 64;

/** Holds leased points. A series of a block is settled once all of its points there are stored or refused. */
export class Window {
  readonly #arena: PointArena;
  readonly #queues: Readonly<Record<Lane, Map<InputId, SeriesQueue>>> = { live: new Map(), backlog: new Map() };
  readonly #points: Record<Lane, number> = { live: 0, backlog: 0 };
  readonly #filled: Readonly<Record<Lane, RepeatedList<SeriesQueue>>> = {
    live: new RepeatedList(),
    backlog: new RepeatedList(),
  };
  readonly #late: LateOrder;
  readonly #blocks = new OpenBlocks();

  /** 17 bytes per point; memory is touched on use only. */
  constructor(capacity: number) {
    this.#arena = new PointArena(capacity);
    this.#late = new LateOrder(this.#arena, {
      queuesOf: (input) => ({ live: this.#queues.live.get(input), backlog: this.#queueOf("backlog", input) }),
      held: (number, input, last) => this.#blocks.setApart(number, input, 1, last),
      freed: (number, input) => this.#blocks.putBack(number, input),
    });
  }

  /** Number of points that fit even if each has its own series. */
  get room(): number {
    return this.#arena.freeSegments;
  }

  /** Points that may be sent. */
  points(lane: Lane): number {
    return this.#points[lane];
  }

  /** Late points of the backlog that wait for earlier points. */
  get waiting(): number {
    return this.#late.points;
  }

  queues(lane: Lane): IteratorObject<SeriesQueue> {
    return this.#queues[lane].values();
  }

  filled(lane: Lane, may: (queue: SeriesQueue) => boolean = () => true): readonly SeriesQueue[] {
    const filled = this.#filled[lane];
    // An iterator would allocate an object for each queue.
    this.#queues[lane].forEach((queue) => {
      if (queue.count > 0 && may(queue)) filled.add(queue);
    });
    return filled.take();
  }

  /** When the oldest point of a non-empty queue was leased, in monotonic milliseconds. */
  since(queue: SeriesQueue): number {
    return this.#blocks.since(queue.firstBlock);
  }

  /** Copies a block. Returns points that JSON cannot express; they stay unsettled until `settleUnsendable`. */
  add(lane: Lane, block: Block, since: number): Unsendable[] {
    const number = this.#blocks.open(lane, block, since);
    const unsendable: Unsendable[] = [];
    const { inputs, timeStarts, valueStarts, times, values, late } = block;
    let previous: SeriesQueue | undefined;
    for (let series = 0; series < inputs.length; series++) {
      const input = inputs[series]!;
      // Blocks of polled series have one order, which saves a lookup by name.
      const guess = previous?.follower;
      const queue = this.#queueOf(lane, input, guess);
      if (previous && queue !== guess) previous.follower = queue;
      previous = queue;
      const before = queue.count;
      const start = valueStarts[series]!;
      const end = valueStarts[series + 1]!;
      const shift = timeStarts[series]! - start;
      const waits = late[series] === 1 || (lane === "backlog" && this.#late.isWaiting(input));
      for (let at = start; at < end; at++) {
        const form = numberForm(values[at]!);
        if (form === 0 || !isWritableTime(times[at + shift]!)) {
          const reason = form === 0 ? "value is not a finite number" : "time is outside the years 1 to 9999";
          unsendable.push({ input, time: times[at + shift]!, value: values[at]!, reason, number });
        } else if (waits) this.#late.append(queue, times[at + shift]!, scaledNumber(values[at]!, form), form, number);
        else queue.append(times[at + shift]!, scaledNumber(values[at]!, form), form, number);
      }
      const queued = queue.count - before;
      this.#points[lane] += queued;
      this.#blocks.opened(number, input, end - start, queued);
    }
    if (number % blocksUntilUnused === 0) this.#forgetUnused();
    return unsendable;
  }

  /** The oldest `count` points of `queue` are stored. */
  settle(queue: SeriesQueue, count: number): void {
    this.#points[queue.lane] -= count;
    this.#blocks.settle(queue, count);
    if (queue.lane === "live") this.#points.backlog += this.#late.advance(queue.input);
  }

  /** Extracts the oldest `count` points of `queue`. They stay unsettled until `settleExtracted`. */
  extract(queue: SeriesQueue, count: number): SubBatchColumn {
    const { input } = queue;
    const column = SubBatchColumn.of(queue, count);
    this.#points[queue.lane] -= count;
    queue.drop(count, (first, blocks, points, last) => {
      for (let i = 0; i < blocks; i++) this.#blocks.setApart(first + i, input, points, last);
    });
    this.#points.backlog += this.#late.extracted(queue, column.times);
    return column;
  }

  /** Extracts all points of `input` from a lane. Undefined: none. */
  extractAll(lane: Lane, input: InputId): SubBatchColumn | undefined {
    const queue = this.#queues[lane].get(input);
    return queue && queue.count > 0 ? this.extract(queue, queue.count) : undefined;
  }

  /** Extracted points were stored or refused for good. */
  settleExtracted({ input, blocks }: SubBatchColumn, refused: boolean): void {
    for (const [number, points] of runsOf(blocks)) this.#blocks.decide(number, input, points, refused);
    this.#points.backlog += this.#late.decided(input, blocks.length);
  }

  /** Returns extracted points to the buffer. */
  forgetExtracted({ input, blocks }: SubBatchColumn): void {
    for (const [number, points] of runsOf(blocks)) this.#blocks.forgetApart(number, input, points, true);
    this.#points.backlog += this.#late.decided(input, blocks.length);
  }

  /** Returns all points of `input` to the buffer, except extracted ones. */
  forgetInput(input: InputId): void {
    for (const lane of ["live", "backlog"] as const) {
      const queue = this.#queues[lane].get(input);
      if (!queue) continue;
      this.#points[lane] -= queue.count;
      this.#forgetQueue(queue, true);
      if (lane === "live") this.#points.backlog += this.#late.advance(input);
    }
  }

  isReturning(input: InputId): boolean {
    return this.#blocks.isReturning(input);
  }

  /** Whether other points of a block wait for extracted ones of this column to return to the buffer. */
  holdsBack({ blocks }: SubBatchColumn): boolean {
    return this.#blocks.hasForgotten && blocks.some(this.#blocks.isForgotten);
  }

  /** Settles unsendable points as refused. */
  settleUnsendable(unsendable: readonly Unsendable[]): void {
    for (const { number, input } of unsendable) this.#blocks.decide(number, input, 1, true);
  }

  takeSettled(): Settlement[] {
    return this.#blocks.takeSettled();
  }

  /** Returns the points of a lane to the buffer, except extracted ones. */
  *forget(lane: Lane): Steps<void> {
    for (const queue of this.#queues[lane].values()) {
      yield queue.count;
      this.#forgetQueue(queue);
      remove(queue);
    }
    this.#queues[lane].clear();
    this.#points[lane] = 0;
    if (lane === "backlog") this.#forgetWaiting();
  }

  #queueOf(lane: Lane, input: InputId, guess?: SeriesQueue): SeriesQueue {
    let queue = guess?.input === input && !guess.isRemoved ? guess : this.#queues[lane].get(input);
    if (!queue) this.#queues[lane].set(input, (queue = new SeriesQueue(lane, input, this.#arena)));
    queue.isUsed = true;
    return queue;
  }

  /**
   * Blocks to release since the last call. They, and those to be released later because of their other points, will be
   * leased again behind the present backlog lane. If that has late points, which may replace some of theirs, it is
   * released too, so that all blocks return in order. To be called before a request is built.
   */
  takeReleased(): BlockId[] {
    const { hasReleased, hasForgotten, hasLate } = this.#blocks;
    if ((hasReleased || hasForgotten) && hasLate) for (const _ of this.forget("backlog"));
    return this.#blocks.takeReleased();
  }

  /** All unsettled blocks, to be released at the end. */
  open(): BlockId[] {
    return this.#blocks.ids();
  }

  #forgetQueue(queue: SeriesQueue, isSingle = false): void {
    const { input } = queue;
    queue.drop(queue.count, (first, blocks, _points, last) => {
      for (let i = 0; i < blocks; i++) this.#blocks.forgetQueued(first + i, input, last, isSingle);
    });
  }

  #forgetWaiting(): void {
    for (const queue of this.#late.queues())
      queue.drop(queue.count, (first, blocks, points) => {
        for (let i = 0; i < blocks; i++) this.#blocks.forgetApart(first + i, queue.input, points, false);
      });
    this.#late.clear();
  }

  #forgetUnused(): void {
    const { live, backlog } = this.#queues;
    for (const queues of live.size > keptQueues ? [live, backlog] : [backlog])
      queues.forEach((queue, input) => {
        if (queue.count === 0 && !queue.isUsed && queues.delete(input)) remove(queue);
        queue.isUsed = false;
      });
  }
}

/** Other queues may still refer to `queue`, but not through it to further ones. */
function remove(queue: SeriesQueue): void {
  queue.isRemoved = true;
  queue.follower = undefined;
}

/** Run-length encoding: each block with the number of its consecutive points. */
function* runsOf(blocks: Float64Array): Generator<[number: number, points: number]> {
  for (let from = 0; from < blocks.length; ) {
    let to = from + 1;
    while (to < blocks.length && blocks[to] === blocks[from]) to++;
    yield [blocks[from]!, to - from];
    from = to;
  }
}
