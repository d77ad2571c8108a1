// Keeps late points of a series behind the points that they may replace.
//
//   live queue       a@10 = 1                   sent soon, or extracted because the service refused its frame
//   waiting queue    a@10 = 2, a@11 = 5         moves to the backlog queue once no point with that time precedes it
//
// Late points are rare, and preceding points are decided within a few requests. Without either, this costs nothing.
import type { InputId } from "../../core/point.ts";
import type { PointArena } from "./point-memory.ts";
import { SeriesQueue } from "./series-queue.ts";

/** Extracted, undecided points of an input. */
interface Extracted {
  count: number;
  from: number;
  to: number;
}

interface Waiting {
  readonly queue: SeriesQueue;
  /** The first `covered` points may move once `barrier` points have left `live`, or it is empty. */
  covered: number;
  live: SeriesQueue | undefined;
  barrier: number;
}

export interface LateOrderParts {
  readonly queuesOf: (input: InputId) => { readonly live: SeriesQueue | undefined; readonly backlog: SeriesQueue };
  /** A point of the block left the backlog queue and waits. `last`: the queue holds no other point of the block. */
  readonly held: (block: number, input: InputId, last: boolean) => void;
  /** A waiting point moved to the backlog queue. */
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

  get points(): number {
    return this.#points;
  }

  /** Whether the input has waiting points. Later backlog points then wait too, so that blocks stay together. */
  isWaiting(input: InputId): boolean {
    return this.#waiting.has(input);
  }

  /** Appends a point to the backlog queue, or makes it wait for preceding points. */
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

  /** Makes points wait that may replace extracted ones. Returns the change in points of the backlog queue. */
  extracted(queue: SeriesQueue, times: Float64Array): number {
    const { input, lane } = queue;
    const extracted = this.#extracted.get(input) ?? { count: 0, from: Infinity, to: -Infinity };
    this.#extracted.set(input, extracted);
    extracted.count += times.length;
    for (const time of times) {
      extracted.from = Math.min(extracted.from, time);
      extracted.to = Math.max(extracted.to, time);
    }
    // Times are distinct in the live lane and in an ascending queue.
    const held = lane === "live" || queue.ascending ? 0 : this.#hold(queue);
    return this.advance(input) - held;
  }

  /** Extracted points were decided. Returns how many points the backlog queue gained. */
  decided(input: InputId, count: number): number {
    const extracted = this.#extracted.get(input);
    if (!extracted) return 0;
    extracted.count -= count;
    if (extracted.count > 0) return 0;
    this.#extracted.delete(input);
    return this.advance(input);
  }

  /** Moves points that need not wait any longer to the backlog queue. Returns their number. */
  advance(input: InputId): number {
    const waiting = this.#waiting.size > 0 ? this.#waiting.get(input) : undefined;
    if (!waiting) return 0;
    const { backlog } = this.#parts.queuesOf(input);
    let moved = 0;
    while (waiting.queue.count > 0) {
      // Points that arrived later may follow later arrivals of the live queue.
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

  *queues(): Generator<SeriesQueue> {
    for (const { queue } of this.#waiting.values()) yield queue;
  }

  /** Call after emptying the queues. */
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

  /** Makes all points of the backlog queue wait. Returns their number. */
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
