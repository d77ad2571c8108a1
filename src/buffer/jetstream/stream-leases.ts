// What of the stream is free, leased, settled or lost: series of frames, and positions, which are message sequences.
import type { StreamState } from "../../cluster/connection/jetstream.ts";
import type { Lane } from "../../core/buffer.ts";
import { AgentError } from "../../core/errors.ts";
import { lowerBound } from "../../lib/values/lists.ts";
import { RangeSet } from "../disk/counters/ranges.ts";
import type { StoredSettlement } from "./settled-frames.ts";
import type { FrameHeader } from "./stream-frame.ts";

const free = 0;
const leased = 1;
const settled = 2;
/** More than the entries of a block; times the number of inputs it is below 2^53. */
const positions = 2 ** 26;

/** A frame with leased series, or with some settled ones. */
export class OpenFrame {
  readonly header: FrameHeader;
  /** Sequence in the stream. Undefined: unknown since the stream lost messages. */
  sequence: number | undefined;
  readonly inputs: Uint32Array;
  readonly #states: Uint8Array;
  #free: number;
  #unsettled: number;

  /** `open`: ranges of unsettled series. Undefined: all are unsettled. */
  constructor(header: FrameHeader, inputs: Uint32Array, open?: readonly number[]) {
    this.header = header;
    this.inputs = inputs;
    this.#states = new Uint8Array(inputs.length).fill(open ? settled : free);
    for (const [from, to] of new RangeSet(open).ranges(0, inputs.length)) this.#states.fill(free, from, to);
    this.#unsettled = this.#free = this.#states.filter((state) => state === free).length;
  }

  get hasFree(): boolean {
    return this.#free > 0;
  }

  get isLeased(): boolean {
    return this.#free < this.#unsettled;
  }

  get isSettled(): boolean {
    return this.#unsettled === 0;
  }

  get isUntouched(): boolean {
    return this.#free === this.inputs.length;
  }

  get freeInputs(): Uint32Array {
    return this.inputs.filter((_, series) => this.isFree(series));
  }

  isFree(series: number): boolean {
    return this.#states[series] === free;
  }

  lease(series: number): void {
    this.#states[series] = leased;
    this.#free--;
  }

  release(series: number): void {
    this.#states[series] = free;
    this.#free++;
  }

  settle(series: number): void {
    this.#states[series] = settled;
    this.#unsettled--;
  }

  get open(): readonly number[] {
    const ranges = new RangeSet();
    for (const [series, state] of this.#states.entries()) if (state !== settled) ranges.add(series, series + 1);
    return ranges.bounds;
  }
}

/** A leased block: columns of frame and series, sorted by input. */
export class FrameLease {
  readonly frames: readonly OpenFrame[];
  readonly late: ReadonlySet<number>;
  readonly #inputs: Uint32Array;
  readonly #frameAt: Uint32Array;
  readonly #seriesAt: Uint32Array;
  readonly #isOpen: Uint8Array;
  #count = 0;

  constructor(frames: readonly OpenFrame[], series: readonly (readonly number[])[]) {
    this.frames = frames;
    const count = series.reduce((sum, { length }) => sum + length, 0);
    const frameOf = new Uint32Array(count);
    const seriesOf = new Uint32Array(count);
    // Input and position in one number: a block has up to millions of entries, and objects would take seconds to sort.
    const keys = new Float64Array(count);
    const late = new Set<number>();
    let at = 0;
    for (const [f, frame] of frames.entries())
      for (const s of series[f]!) {
        const input = frame.inputs[s]!;
        if (frame.header.late) late.add(input);
        frameOf[at] = f;
        seriesOf[at] = s;
        keys[at] = input * positions + at++;
      }
    keys.sort();
    this.late = late;
    this.#inputs = Uint32Array.from(keys, (key) => key / positions);
    this.#frameAt = Uint32Array.from(keys, (key) => frameOf[key % positions]!);
    this.#seriesAt = Uint32Array.from(keys, (key) => seriesOf[key % positions]!);
    this.#isOpen = new Uint8Array(count).fill(1);
    for (const [i, input] of this.#inputs.entries()) if (input !== this.#inputs[i - 1]) this.#count++;
    for (const [f, frame] of frames.entries()) for (const s of series[f]!) frame.lease(s);
  }

  /** Number of unsettled inputs. */
  get count(): number {
    return this.#count;
  }

  has(input: number): boolean {
    const at = lowerBound(this.#inputs, input);
    return this.#inputs[at] === input && this.#isOpen[at] === 1;
  }

  settle(inputs: Uint32Array): void {
    for (const input of inputs) {
      if (!this.has(input)) continue;
      this.#count--;
      for (let at = lowerBound(this.#inputs, input); this.#inputs[at] === input; at++) this.#end(at, "settle");
    }
  }

  release(): void {
    for (let at = 0; at < this.#inputs.length; at++) if (this.#isOpen[at] === 1) this.#end(at, "release");
  }

  #end(at: number, how: "settle" | "release"): void {
    this.#isOpen[at] = 0;
    this.frames[this.#frameAt[at]!]![how](this.#seriesAt[at]!);
  }
}

// The positions of the stream: which are settled, which have free points, which were lost.

export interface PositionEvents {
  /** Unsettled messages are missing from the stream. */
  readonly onLost: (messages: number) => void;
  /** Positions refer to other messages from now on. */
  readonly onForgotten: () => void;
  /** The stream has no messages before `first` any more. */
  readonly onRemoved: (first: number) => void;
}

/**
 * Positions are valid as long as the same server leads the stream without a break. A new leader may have lost messages
 * and reused their sequences.
 */
export class StreamPositions {
  readonly #events: PositionEvents;
  readonly #done = new RangeSet();
  /** Positions without free points, and positions of late frames, which the live lane skips. */
  readonly #taken = new RangeSet();
  readonly #late = new RangeSet();
  /** Positions settled under earlier leaders. The servers may still remove them: such a message is not lost. */
  readonly #formerlyDone = new RangeSet();
  #stream = "";
  #created = "";
  #first = 1;
  #last = 0;

  constructor(events: PositionEvents) {
    this.#events = events;
  }

  /** Identifies the stream and its leader, to which the positions refer. */
  get stream(): string {
    return this.#stream;
  }

  get done(): readonly number[] {
    return this.#done.bounds;
  }

  get settledUpTo(): number {
    return this.#done.endOf(this.#first) ?? this.#first;
  }

  get first(): number {
    return this.#first;
  }

  get isDrained(): boolean {
    return this.settledUpTo > this.#last;
  }

  isValidFor(state: StreamState): boolean {
    return leaderOf(state) === this.#stream && state.lastSequence >= this.#last;
  }

  /** Applies the current state of the stream. `before`: the settlement of the earlier term. */
  follow(state: StreamState, before?: Pick<StoredSettlement, "stream" | "whole">): void {
    const { created, lastSequence } = state;
    const stream = leaderOf(state);
    if (!this.isValidFor(state)) this.#forget();
    if (created !== this.#created) this.#formerlyDone.clear();
    this.#stream = stream;
    this.#created = created;
    if (before?.stream === stream) for (const [from, to] of new RangeSet(before.whole).ranges()) this.finish(from, to);
    else if (before?.stream.startsWith(`${created} `)) this.#formerlyDone.addAll(new RangeSet(before.whole));
    this.#formerlyDone.remove(lastSequence + 1, Number.POSITIVE_INFINITY);
    this.#dropBefore(state.firstSequence);
    this.#last = lastSequence;
  }

  /** The messages from `from` to before `to` are settled or lost. */
  finish(from: number, to = from + 1): void {
    this.#done.add(from, to);
    this.#taken.add(from, to);
  }

  /** The message has no free points, or cannot be delivered now. */
  take(at: number): void {
    this.#taken.add(at, at + 1);
  }

  free(at: number): void {
    this.#taken.remove(at, at + 1);
  }

  freeAll(positions: RangeSet): void {
    this.#taken.removeAll(positions);
  }

  /** Hides a late frame from the live lane. */
  markLate(at: number): void {
    this.#late.add(at, at + 1);
  }

  /** The next position that may have free points: ascending for the backlog, descending for the live lane. */
  next(lane: Lane, after?: number): number | undefined {
    if (lane === "backlog") {
      const at = after === undefined ? this.#first : after + 1;
      const free = this.#taken.endOf(at) ?? at;
      return free <= this.#last ? free : undefined;
    }
    for (let at = after === undefined ? this.#last : after - 1; at >= this.#first; at--) {
      const start = this.#taken.startOf(at) ?? this.#late.startOf(at);
      if (start === undefined) return at;
      at = start;
    }
    return undefined;
  }

  /**
   * Passes the positions from `from` to before `to`, which have no message. They are not lost if the state was from a
   * former leader, cut off or suspended meanwhile: it answers as leader for up to 10 s, while others have removed messages
   * that were settled. `state`: read after the absence was noticed. Throws `CLUSTER_UNREACHABLE` if another server leads
   * now.
   */
  pass(from: number, to: number, state: StreamState | undefined): void {
    if (!state || leaderOf(state) !== this.#stream)
      throw new AgentError("CLUSTER_UNREACHABLE", "another server leads the stream now");
    const { firstSequence, lastSequence, messages } = state;
    const isMissing = firstSequence > from || messages <= lastSequence - firstSequence;
    if (!isMissing) return this.#taken.add(from, to);
    this.#countLost(from, Math.min(to, this.#last + 1));
    this.finish(from, to);
  }

  #forget(): void {
    this.#formerlyDone.addAll(this.#done);
    for (const ranges of [this.#done, this.#taken, this.#late]) ranges.clear();
    this.#events.onForgotten();
    this.#first = 1;
  }

  #dropBefore(first: number): void {
    if (first <= this.#first) return;
    // A reader that does not know the stream yet does not know which messages were delivered.
    if (this.#first > 1) this.#countLost(this.#first, first);
    for (const ranges of [this.#done, this.#formerlyDone, this.#taken, this.#late]) ranges.remove(0, first);
    this.#events.onRemoved(first);
    this.#first = first;
  }

  /** The messages from `from` to before `to` are not in the stream any more. */
  #countLost(from: number, to: number): void {
    const delivered = this.#done.within(from, to);
    delivered.addAll(this.#formerlyDone.within(from, to));
    const lost = to - from - delivered.count;
    if (lost > 0) this.#events.onLost(lost);
  }
}

/** Identifies the stream and the server that leads it. */
const leaderOf = ({ created, leader }: StreamState) => `${created} ${leader}`;
