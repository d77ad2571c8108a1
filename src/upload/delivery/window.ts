// The unsettled points by series, bounded in memory, and which blocks of the buffer they came in.
import type { Block, BlockId, Lane, Settlement } from "../../core/buffer.ts";
import type { InputId } from "../../core/point.ts";
import type { Steps } from "../../lib/in-slices.ts";
import { LateOrder } from "../series/late-order.ts";
import { numberForm, scaledNumber } from "../series/number-text.ts";
import { PointArena } from "../series/point-arena.ts";
import { SeriesQueue } from "../series/series-queue.ts";
import { isWritableTime } from "../series/time-text.ts";
import { PortionColumn } from "./portion.ts";
import { SettledLog } from "./settled-log.ts";

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
  readonly slot: number;
  readonly inputs: readonly InputId[];
  /** When it was taken, on the monotonic clock in milliseconds. */
  readonly since: number;
  /** Series of it that have points here. */
  series: number;
  /** Of `series`, those at the last `takeSettled`, less those that left since and are not in the log. */
  before: number;
  /** Since the last `takeSettled`: settled series that are not in the log, and how many points the service refused. */
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
  /** Slot → block. */
  readonly #blocks: (OpenBlock | undefined)[] = [];
  readonly #freeSlots: number[] = [];
  /** Blocks of which series were settled since the last `takeSettled`, and the series that were settled from a queue. */
  #progressed: OpenBlock[] = [];
  readonly #log = new SettledLog();
  /** Of blocks that were closed since: the log names them. */
  readonly #closedSlots: number[] = [];
  #released: BlockId[] = [];
  #lastInputs: readonly InputId[] = [];

  /** 21 bytes a point, touched only as they are needed. */
  constructor(capacity: number) {
    this.#arena = new PointArena(capacity);
    this.#late = new LateOrder(this.#arena, {
      queuesOf: (input) => ({ live: this.#queues.live.get(input), backlog: this.#queueOf("backlog", input) }),
      held: (slot, input, last) => this.#setApart(slot, input, 1, last),
      freed: (slot, input) => {
        const apart = this.#blocks[slot]?.apart?.get(input);
        if (apart) Object.assign(apart, { left: apart.left - 1, queued: true });
      },
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
    return this.#blocks[queue.firstBlock]?.since ?? 0;
  }

  /** Copies a block into the window. What cannot be written as JSON is returned, and is unsettled until `settleUnsendable`. */
  add(lane: Lane, block: Block, since: number): Unsendable[] {
    const slot = this.#freeSlots.pop() ?? this.#blocks.length;
    const open: OpenBlock = {
      id: block.id,
      slot,
      inputs: this.#inputsOf(block),
      since,
      series: block.series.length,
      before: block.series.length,
      done: undefined,
      refused: 0,
      progressed: false,
      apart: undefined,
      forgotten: false,
      late: block.series.some(({ late }) => late === true),
      returning: undefined,
    };
    this.#blocks[slot] = open;
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
      if (queued < times.length)
        (open.apart ??= new Map()).set(input, {
          left: times.length - queued,
          refused: 0,
          queued: queued > 0,
          forgotten: false,
        });
      else if (queued === 0) this.#finish(open, input);
    }
    if (block.series.length === 0) this.#close(open);
    return unsendable;
  }

  /** The service has the oldest `count` points of `queue`. */
  settle(queue: SeriesQueue, count: number): void {
    this.#points[queue.lane] -= count;
    const blocks = this.#blocks;
    const slots = this.#log.slots(count);
    let end = this.#log.count;
    queue.drop(count, (slot, _points, last) => {
      if (!last) return;
      const open = blocks[slot];
      if (!open || open.apart) {
        this.#leave(slot, queue.input);
        return;
      }
      slots[end++] = slot;
      if (!open.progressed) this.#noteProgress(open);
      if (--open.series === 0) this.#close(open);
    });
    this.#log.endSeries(queue.input, end);
    this.#forgetEmpty(queue);
    if (queue.lane === "live") this.#points.backlog += this.#late.advance(queue.input);
  }

  /** Takes the oldest `count` points of `queue` out; they stay unsettled until `settleExtracted`. */
  extract(queue: SeriesQueue, count: number): PortionColumn {
    const { input } = queue;
    const { times, values, slots } = queue.copy(count);
    this.#points[queue.lane] -= count;
    queue.drop(count, (slot, points, last) => this.#setApart(slot, input, points, last));
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
    for (const [slot, points] of runsOf(slots)) this.#decide(slot, input, points, refused);
    this.#points.backlog += this.#late.decided(input, slots.length);
  }

  /** Points that were taken out go back to the buffer. */
  forgetExtracted({ input, slots }: PortionColumn): void {
    for (const [slot, points] of runsOf(slots)) {
      const open = this.#blocks[slot];
      const apart = open?.apart?.get(input);
      if (!open || !apart) continue;
      apart.forgotten = true;
      open.forgotten = true;
      (open.returning ??= new Set()).add(input);
      this.#decide(slot, input, points, false);
    }
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
    return this.#blocks.some((open) => open?.returning?.has(input));
  }

  /** Points that cannot be sent count as refused for good. */
  settleUnsendable(unsendable: readonly Unsendable[]): void {
    for (const { slot, input } of unsendable) this.#decide(slot, input, 1, true);
  }

  /** What was settled since the last call. */
  takeSettled(): Settlement[] {
    const settled: Settlement[] = [];
    const lists = new Map<number, InputId[]>();
    for (const open of this.#progressed) {
      const { id: block, slot, done = [], refused } = open;
      const isWhole = open.before - open.series === open.inputs.length;
      if (!isWhole) lists.set(slot, done);
      const inputs = isWhole ? open.inputs : done;
      settled.push(refused > 0 ? { block, inputs, refused } : { block, inputs });
      open.before = open.series;
      open.done = undefined;
      open.refused = 0;
      open.progressed = false;
    }
    this.#log.collect(lists);
    this.#log.clear();
    this.#progressed = [];
    for (const slot of this.#closedSlots.splice(0)) this.#freeSlots.push(slot);
    return settled;
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
    if (this.#released.length > 0 && this.#blocks.some((open) => open?.late)) for (const _ of this.forget("backlog"));
    const released = this.#released;
    this.#released = [];
    return released;
  }

  /** All blocks that are not settled: what to give back at the end. */
  open(): BlockId[] {
    return [...new Set(this.#blocks.flatMap((open) => (open ? [open.id] : [])))];
  }

  #forgetQueue(queue: SeriesQueue, isSingle = false): void {
    const { input } = queue;
    queue.drop(queue.count, (slot, _points, last) => {
      const open = this.#blocks[slot];
      if (!open) return;
      open.forgotten = true;
      if (isSingle) (open.returning ??= new Set()).add(input);
      const apart = open.apart?.get(input);
      if (apart) apart.forgotten = true;
      if (last) this.#leave(slot, input, true);
    });
  }

  #forgetWaiting(): void {
    for (const queue of this.#late.queues())
      queue.drop(queue.count, (slot, points) => {
        const open = this.#blocks[slot];
        const apart = open?.apart?.get(queue.input);
        if (!open || !apart) return;
        open.forgotten = true;
        apart.forgotten = true;
        apart.left -= points;
        if (apart.left === 0 && !apart.queued) this.#finish(open, queue.input, true);
      });
    this.#late.clear();
  }

  #forgetEmpty({ lane, input, count }: SeriesQueue): void {
    const queues = this.#queues[lane];
    if (count === 0 && queues.size > keptQueues) queues.delete(input);
  }

  /** Points left the queue undecided; `last`: it holds no further point of that block. */
  #setApart(slot: number, input: InputId, points: number, last: boolean): void {
    const open = this.#blocks[slot];
    if (!open) return;
    const apart = open.apart?.get(input) ?? { left: 0, refused: 0, queued: true, forgotten: false };
    apart.left += points;
    apart.queued = !last;
    (open.apart ??= new Map()).set(input, apart);
  }

  /** The queue of `input` holds no further point of that block. */
  #leave(slot: number, input: InputId, forgotten = false): void {
    const open = this.#blocks[slot];
    if (!open) return;
    const apart = open.apart?.get(input);
    if (apart) apart.queued = false;
    if (!apart || apart.left === 0) this.#finish(open, input, forgotten);
  }

  /** Points outside the queue are stored or refused. */
  #decide(slot: number, input: InputId, points: number, refused: boolean): void {
    const open = this.#blocks[slot];
    const apart = open?.apart?.get(input);
    if (!open || !apart) return;
    apart.left -= points;
    if (refused) apart.refused += points;
    if (apart.left === 0 && !apart.queued) this.#finish(open, input);
  }

  /** Nothing of this series of the block is left here. */
  #finish(open: OpenBlock, input: InputId, forgotten = false): void {
    const apart = open.apart?.get(input);
    if (!forgotten && apart?.forgotten !== true) {
      (open.done ??= []).push(input);
      open.refused += apart?.refused ?? 0;
      this.#noteProgress(open);
    }
    open.apart?.delete(input);
    if (open.apart?.size === 0) open.apart = undefined;
    open.series--;
    open.before--;
    if (open.series === 0) this.#close(open);
  }

  #noteProgress(open: OpenBlock): void {
    if (open.progressed) return;
    open.progressed = true;
    this.#progressed.push(open);
  }

  #close(open: OpenBlock): void {
    // A block without series has nothing that could be settled one by one.
    if (open.inputs.length === 0) this.#noteProgress(open);
    if (open.forgotten) this.#released.push(open.id);
    this.#blocks[open.slot] = undefined;
    this.#closedSlots.push(open.slot);
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

/** Each slot, with how often it comes in a row. */
function* runsOf(slots: Uint32Array): Generator<[slot: number, points: number]> {
  for (let from = 0; from < slots.length; ) {
    let to = from + 1;
    while (to < slots.length && slots[to] === slots[from]) to++;
    yield [slots[from]!, to - from];
    from = to;
  }
}
