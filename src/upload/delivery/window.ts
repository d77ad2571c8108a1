// The unsettled points by series, bounded in memory, and which blocks of the buffer they came in.
import type { Block, BlockId, Lane, Settlement } from "../../core/buffer.ts";
import type { InputId } from "../../core/point.ts";
import type { Steps } from "../../lib/in-slices.ts";
import { LateOrder } from "../series/late-order.ts";
import { isWritableTime, numberForm, scaledNumber } from "../series/number-text.ts";
import { PointArena } from "../series/point-arena.ts";
import { SeriesQueue } from "../series/series-queue.ts";
import { OpenBlocks } from "./open-blocks.ts";
import { PortionColumn } from "./portion.ts";

/** A point that cannot be sent at all, and why. */
export interface Unsendable {
  readonly input: InputId;
  readonly time: number;
  readonly value: number;
  readonly reason: string;
  /** Slot of the block that it came in. */
  readonly slot: number;
}

/**
 * Queues of a lane that are kept while they are empty. With more, a queue goes with its last point: a burst of many
 * inputs must not keep 170 bytes of each for ever.
 */
const keptQueues = 4_096;

/**
 * Holds what was taken from the buffer. A series of a block is settled when the service has stored or refused all of its
 * points in that block. Until then a restart delivers these points again.
 */
export class Window {
  readonly #arena: PointArena;
  readonly #queues: Readonly<Record<Lane, Map<InputId, SeriesQueue>>> = { live: new Map(), backlog: new Map() };
  readonly #points: Record<Lane, number> = { live: 0, backlog: 0 };
  readonly #late: LateOrder;
  readonly #blocks = new OpenBlocks();

  /** 21 bytes a point, touched only as they are needed. */
  constructor(capacity: number) {
    this.#arena = new PointArena(capacity);
    this.#late = new LateOrder(this.#arena, {
      queuesOf: (input) => ({ live: this.#queues.live.get(input), backlog: this.#queueOf("backlog", input) }),
      held: (slot, input, last) => this.#blocks.setApart(slot, input, 1, last),
      freed: (slot, input) => this.#blocks.putBack(slot, input),
    });
  }

  /** Points that fit for certain, even if each is of another series. */
  get room(): number {
    return this.#arena.freeSegments;
  }

  /** Points that may be sent. */
  points(lane: Lane): number {
    return this.#points[lane];
  }

  /** Late points of the backlog that wait for points in their way. */
  get waiting(): number {
    return this.#late.points;
  }

  queues(lane: Lane): Iterable<SeriesQueue> {
    return this.#queues[lane].values();
  }

  /** When the oldest point of a queue that is not empty was taken, on the monotonic clock in milliseconds. */
  since(queue: SeriesQueue): number {
    return this.#blocks.since(queue.firstBlock);
  }

  /** Copies a block into the window. What cannot be written as JSON is returned, and is unsettled until `settleUnsendable`. */
  add(lane: Lane, block: Block, since: number): Unsendable[] {
    const slot = this.#blocks.open(block, since);
    const unsendable: Unsendable[] = [];
    for (const { input, times, values, late } of block.series) {
      const queue = this.#queueOf(lane, input);
      const before = queue.count;
      for (let i = 0; i < times.length; i++) {
        const time = times[i] ?? Number.NaN;
        const value = values[i] ?? Number.NaN;
        const form = numberForm(value);
        if (form !== 0 && isWritableTime(time)) {
          if (late === true || (lane === "backlog" && this.#late.isWaiting(input)))
            this.#late.append(queue, time, scaledNumber(value, form), form, slot);
          else queue.append(time, scaledNumber(value, form), form, slot);
        } else {
          const reason = form === 0 ? "value is not a finite number" : "time is outside the years 1 to 9999";
          unsendable.push({ input, time, value, reason, slot });
        }
      }
      const queued = queue.count - before;
      this.#points[lane] += queued;
      this.#blocks.opened(slot, input, times.length, queued);
    }
    return unsendable;
  }

  /** The service has the oldest `count` points of `queue`. */
  settle(queue: SeriesQueue, count: number): void {
    this.#points[queue.lane] -= count;
    this.#blocks.settle(queue, count);
    this.#forgetEmpty(queue);
    if (queue.lane === "live") this.#points.backlog += this.#late.advance(queue.input);
  }

  /** Takes the oldest `count` points of `queue` out; they stay unsettled until `settleExtracted`. */
  extract(queue: SeriesQueue, count: number): PortionColumn {
    const { input } = queue;
    const { times, values, slots } = queue.copy(count);
    this.#points[queue.lane] -= count;
    queue.drop(count, (slot, points, last) => this.#blocks.setApart(slot, input, points, last));
    this.#points.backlog += this.#late.extracted(queue, times);
    this.#forgetEmpty(queue);
    return new PortionColumn(input, times, values, slots);
  }

  /** Takes all points of `input` out of a lane; undefined: there are none. */
  extractAll(lane: Lane, input: InputId): PortionColumn | undefined {
    const queue = this.#queues[lane].get(input);
    return queue && queue.count > 0 ? this.extract(queue, queue.count) : undefined;
  }

  /** Points that were taken out are stored, or refused for good. */
  settleExtracted({ input, slots }: PortionColumn, refused: boolean): void {
    for (const [slot, points] of runsOf(slots)) this.#blocks.decide(slot, input, points, refused);
    this.#points.backlog += this.#late.decided(input, slots.length);
  }

  /** Points that were taken out go back to the buffer. */
  forgetExtracted({ input, slots }: PortionColumn): void {
    for (const [slot, points] of runsOf(slots)) this.#blocks.forgetApart(slot, input, points, true);
    this.#points.backlog += this.#late.decided(input, slots.length);
  }

  /** All points of `input` go back to the buffer, except those taken out. */
  forgetInput(input: InputId): void {
    for (const lane of ["live", "backlog"] as const) {
      const queue = this.#queues[lane].get(input);
      if (!queue) continue;
      this.#points[lane] -= queue.count;
      this.#forgetQueue(queue, true);
      if (lane === "live") this.#points.backlog += this.#late.advance(input);
    }
  }

  /** Whether points of `input` go back to the buffer as soon as nothing else of their blocks is here. */
  isReturning(input: InputId): boolean {
    return this.#blocks.isReturning(input);
  }

  /** Points that cannot be sent count as refused for good. */
  settleUnsendable(unsendable: readonly Unsendable[]): void {
    for (const { slot, input } of unsendable) this.#blocks.decide(slot, input, 1, true);
  }

  /** What was settled since the last call. */
  takeSettled(): Settlement[] {
    return this.#blocks.takeSettled();
  }

  /** Forgets the points of a lane, except those taken out: their blocks go back to the buffer. */
  *forget(lane: Lane): Steps<void> {
    for (const queue of this.#queues[lane].values()) {
      yield queue.count;
      this.#forgetQueue(queue);
    }
    this.#queues[lane].clear();
    this.#points[lane] = 0;
    if (lane === "backlog") this.#forgetWaiting();
  }

  #queueOf(lane: Lane, input: InputId): SeriesQueue {
    let queue = this.#queues[lane].get(input);
    if (!queue) this.#queues[lane].set(input, (queue = new SeriesQueue(lane, input, this.#arena)));
    return queue;
  }

  /**
   * Blocks to give back to the buffer since the last call. They come again behind what is in the backlog lane, and late
   * points there may replace some of theirs: then the backlog lane goes back, too, so that all come again in their order.
   */
  takeReleased(): BlockId[] {
    if (this.#blocks.hasReleased && this.#blocks.hasLate) for (const _ of this.forget("backlog"));
    return this.#blocks.takeReleased();
  }

  /** All blocks that are not settled: what to give back at the end. */
  open(): BlockId[] {
    return this.#blocks.ids();
  }

  #forgetQueue(queue: SeriesQueue, isSingle = false): void {
    const { input } = queue;
    queue.drop(queue.count, (slot, _points, last) => this.#blocks.forgetQueued(slot, input, last, isSingle));
  }

  #forgetWaiting(): void {
    for (const queue of this.#late.queues())
      queue.drop(queue.count, (slot, points) => this.#blocks.forgetApart(slot, queue.input, points, false));
    this.#late.clear();
  }

  #forgetEmpty({ lane, input, count }: SeriesQueue): void {
    const queues = this.#queues[lane];
    if (count === 0 && queues.size > keptQueues) queues.delete(input);
  }
}

/** Each slot, with how often it comes in a row. */
function* runsOf(slots: Uint32Array): Generator<[slot: number, points: number]> {
  for (let from = 0; from < slots.length; ) {
    let to = from + 1;
    while (to < slots.length && slots[to] === slots[from]) to++;
    yield [slots[from]!, to - from];
    from = to;
  }
}
