// Keeps late points of a series behind the points that they may replace, wherever those are.
//
//   live queue       a@10 = 1                   sent before long, or taken out because the service refused its frame
//   waiting queue    a@10 = 2, a@11 = 5         moves to the backlog queue when no point of that time is in the way
//
// Late points are rare, and points in the way are decided within a few requests. Nothing is looked at while neither is there.
import type { Block } from "../../core/block.ts";
import type { InputId } from "../../core/point.ts";
import { isWritableTime, numberForm, scaledNumber } from "./number-text.ts";
import type { PointArena } from "./point-arena.ts";
import { SeriesQueue } from "./series-queue.ts";

/** Points of an input that were taken out of their queue and are not decided. */
interface Extracted {
  count: number;
  from: number;
  to: number;
}

interface Waiting {
  readonly queue: SeriesQueue;
  /** The first so many may move once `live` has given out `barrier` points or is empty. */
  covered: number;
  live: SeriesQueue | undefined;
  barrier: number;
}

export interface LateOrderParts {
  readonly queuesOf: (input: InputId) => { readonly live: SeriesQueue | undefined; readonly backlog: SeriesQueue };
  /** A point of the block with this number left the backlog queue and waits; `last`: the queue holds no other of that block. */
  readonly held: (block: number, input: InputId, last: boolean) => void;
  /** A point that waited is in the backlog queue now. */
  readonly freed: (block: number, input: InputId) => void;
}

export class LateOrder {
  readonly #arena: PointArena;
  readonly #parts: LateOrderParts;
  readonly #waiting = new Map<InputId, Waiting>();
  readonly #extracted = new Map<InputId, Extracted>();
  #points = 0;

  constructor(arena: PointArena, parts: LateOrderParts) {
    this.#arena = arena;
    this.#parts = parts;
  }

  /** Points that wait. */
  get points(): number {
    return this.#points;
  }

  /** Whether points of the input wait. What the backlog has behind them waits, too: points of one block stay together. */
  isWaiting(input: InputId): boolean {
    return this.#waiting.has(input);
  }

  /** As `SeriesQueue.appendFrom`, where points may have to wait. */
  appendFrom(backlog: SeriesQueue, { times, values }: Block, shift: number, from: number, to: number, block: number) {
    for (let at = from; at < to; at++) {
      const form = numberForm(values[at]!);
      const time = times[at + shift]!;
      if (form === 0 || !isWritableTime(time)) return at;
      this.append(backlog, time, scaledNumber(values[at]!, form), form, block);
    }
    return to;
  }

  /** Puts a point into the backlog queue, or lets it wait for the points in its way. */
  append(backlog: SeriesQueue, time: number, scaled: number, form: number, block: number): void {
    const { input } = backlog;
    const { live } = this.#parts.queuesOf(input);
    if (!this.#waiting.has(input) && !this.#isExtracted(input, time) && !live?.spans(time)) {
      backlog.append(time, scaled, form, block);
      return;
    }
    let waiting = this.#waiting.get(input);
    if (!waiting)
      this.#waiting.set(input, (waiting = this.#behindLive(new SeriesQueue("backlog", input, this.#arena), 1)));
    waiting.queue.append(time, scaled, form, block);
    this.#points++;
  }

  /**
   * Points of `queue` were taken out. What stands behind them waits where it may replace them. Gives by how many points
   * the backlog queue grew; below 0 where it shrank.
   */
  extracted(queue: SeriesQueue, times: Float64Array): number {
    const { input, lane } = queue;
    const extracted = this.#extracted.get(input) ?? { count: 0, from: Infinity, to: -Infinity };
    this.#extracted.set(input, extracted);
    extracted.count += times.length;
    for (const time of times) {
      extracted.from = Math.min(extracted.from, time);
      extracted.to = Math.max(extracted.to, time);
    }
    // In the live lane, and in a queue that ascends, no time comes twice.
    const held = lane === "live" || queue.ascending ? 0 : this.#hold(queue);
    return this.advance(input) - held;
  }

  /** Points that were taken out are decided. Gives by how many points the backlog queue grew. */
  decided(input: InputId, count: number): number {
    const extracted = this.#extracted.get(input);
    if (!extracted) return 0;
    extracted.count -= count;
    if (extracted.count > 0) return 0;
    this.#extracted.delete(input);
    return this.advance(input);
  }

  /** Moves to the backlog queue what nothing is in the way of any more. Gives by how many points it grew. */
  advance(input: InputId): number {
    const waiting = this.#waiting.get(input);
    if (!waiting) return 0;
    const { backlog } = this.#parts.queuesOf(input);
    let moved = 0;
    while (waiting.queue.count > 0) {
      // What came since may have come behind points of the live queue that came since, too.
      if (waiting.covered === 0) Object.assign(waiting, this.#behindLive(waiting.queue, waiting.queue.count));
      const { live, barrier, covered } = waiting;
      if (live && live.count > 0 && live.arrived - live.count < barrier) break;
      const count = waiting.queue.moveTo(backlog, covered, {
        stays: (time) => this.#isExtracted(input, time),
        moved: (block) => this.#parts.freed(block, input),
      });
      waiting.covered -= count;
      moved += count;
      if (waiting.covered > 0) break;
    }
    if (waiting.queue.count === 0) this.#waiting.delete(input);
    this.#points -= moved;
    return moved;
  }

  /** Queues of points that wait. */
  *queues(): Generator<SeriesQueue> {
    for (const { queue } of this.#waiting.values()) yield queue;
  }

  /** Nothing waits any more: the caller has emptied the queues. */
  clear(): void {
    this.#waiting.clear();
    this.#points = 0;
  }

  #isExtracted(input: InputId, time: number): boolean {
    const extracted = this.#extracted.get(input);
    return extracted !== undefined && time >= extracted.from && time <= extracted.to;
  }

  #behindLive(queue: SeriesQueue, covered: number): Waiting {
    const { live } = this.#parts.queuesOf(queue.input);
    return { queue, covered, live, barrier: live?.arrived ?? 0 };
  }

  /** Everything in the queue of the backlog waits from now on. Gives how many points that are. */
  #hold(queue: SeriesQueue): number {
    const { input } = queue;
    const all = new SeriesQueue("backlog", input, this.#arena);
    const held = queue.moveTo(all, queue.count, { moved: (block, last) => this.#parts.held(block, input, last) });
    if (held === 0) return 0;
    const behind = this.#waiting.get(input)?.queue;
    behind?.moveTo(all, behind.count);
    this.#waiting.set(input, this.#behindLive(all, all.count));
    this.#points += held;
    return held;
  }
}
