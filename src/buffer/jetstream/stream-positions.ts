// The positions of the stream, as message sequences: which are settled, which have free points, which were lost.
import type { StreamState } from "../../cluster/connection/jetstream.ts";
import type { Lane } from "../../core/buffer.ts";
import { AgentError } from "../../core/errors.ts";
import { RangeSet } from "../disk/counters/ranges.ts";
import type { StoredSettlement } from "./settled-frames.ts";

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
function leaderOf({ created, leader }: StreamState): string {
  return `${created} ${leader}`;
}
