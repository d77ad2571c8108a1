// Report by exception: which readings of an input are worth a point, and when.
//
//   stored ──┬── differs by more than the dead band, or the heartbeat is over ──► minInterval over? ── yes ─► stored
//            │                                                                        no ─► held back, the newest wins
//            └── else ─► filtered (and what is held back is over: the value is where it was)
//
// Intervals are measured in the time of the readings, so that an hour of messages that a broker kept is not thinned to
// what one second may have; the monotonic clock only says when the last one of a burst is due. A device whose clock is
// set back starts a new interval instead of waiting for its old time to come again.
import type { EpochMicros } from "../core/point.ts";
import type { InputState, ReportState } from "./input-state.ts";

/** Puts a point that is to be stored where it belongs. */
type Emit = (state: InputState, time: EpochMicros, value: number) => void;

/** Held points become due together at multiples of this, in milliseconds, however many inputs there are. */
const dueGridMs = 50;

export class Reporter {
  readonly #emit: Emit;
  /** Inputs that have a held point. */
  readonly #held = new Set<ReportState>();
  #stretch = 1;
  #nextDue: number | undefined;

  constructor(emit: Emit) {
    this.#emit = emit;
  }

  /** The next reading of every input is stored. */
  interrupt(): void {
    this.#stretch++;
  }

  /** A good reading: stores it, holds it back or lets it go. */
  take(state: ReportState, time: EpochMicros, value: number, nowMs: number): void {
    if (state.stretch !== this.#stretch) {
      if (state.held) this.#release(state, nowMs);
      this.#store(state, time, value, nowMs);
      return;
    }
    if (state.held && time >= state.windowEnd) this.#release(state, nowMs);
    if (!differs(state, value) && !heartbeatOver(state, time, nowMs)) {
      state.filtered++;
      if (state.held) {
        state.filtered++;
        this.#forget(state);
      }
    } else if (time < state.windowEnd && time >= state.windowEnd - state.rule.minIntervalUs)
      this.#hold(state, time, value, nowMs);
    else this.#store(state, time, value, nowMs);
  }

  /** The device lives and nothing changed: the stored value again, if the heartbeat is over. */
  beat(state: ReportState, time: EpochMicros, nowMs: number): void {
    const { heartbeat } = state.rule;
    if (heartbeat === undefined || state.stretch !== this.#stretch || state.held) return;
    if (nowMs - state.storedMs >= heartbeat && time > state.storedTime)
      this.#store(state, time, state.storedValue, nowMs);
  }

  /** Milliseconds of the monotonic clock; undefined: nothing is held back. */
  get nextDue(): number | undefined {
    return this.#nextDue;
  }

  /** Stores what is due at `nowMs`; everything that is held back where that is infinite. */
  release(nowMs: number): void {
    if (this.#nextDue === undefined || this.#nextDue > nowMs) return;
    let next: number | undefined;
    for (const state of this.#held) {
      const dueMs = state.held?.dueMs ?? 0;
      if (dueMs <= nowMs) this.#release(state, Math.min(nowMs, dueMs));
      else next = Math.min(next ?? dueMs, dueMs);
    }
    this.#nextDue = next;
  }

  #store(state: ReportState, time: EpochMicros, value: number, nowMs: number): void {
    state.stretch = this.#stretch;
    state.windowEnd = time + state.rule.minIntervalUs;
    this.#put(state, time, value, nowMs);
  }

  #put(state: ReportState, time: EpochMicros, value: number, nowMs: number): void {
    state.storedValue = value;
    state.storedTime = time;
    state.storedMs = nowMs;
    this.#emit(state.of, time, value);
  }

  #hold(state: ReportState, time: EpochMicros, value: number, nowMs: number): void {
    if (state.held) {
      state.filtered++;
      state.held.value = value;
      state.held.time = time;
      return;
    }
    const dueMs = Math.ceil((nowMs + (state.windowEnd - time) / 1_000) / dueGridMs) * dueGridMs;
    state.held = { value, time, dueMs };
    this.#held.add(state);
    this.#nextDue = Math.min(this.#nextDue ?? dueMs, dueMs);
  }

  /** Stores what is held back. The next interval begins where this one ended. */
  #release(state: ReportState, nowMs: number): void {
    const { held } = state;
    if (!held) return;
    this.#forget(state);
    state.windowEnd += state.rule.minIntervalUs;
    this.#put(state, held.time, held.value, nowMs);
  }

  #forget(state: ReportState): void {
    state.held = undefined;
    this.#held.delete(state);
    if (this.#held.size === 0) this.#nextDue = undefined;
  }
}

/** 0.3 differs from 0.1 by 0.2 and no more, although doubles do not quite agree. */
function differs({ deadband, storedValue }: ReportState, value: number): boolean {
  const difference = Math.abs(value - storedValue);
  if (deadband === 0) return difference > 0;
  const dust = 4 * Number.EPSILON * Math.max(Math.abs(value), Math.abs(storedValue));
  return !(difference <= deadband + dust);
}

function heartbeatOver(
  { rule: { heartbeat }, storedTime, storedMs }: ReportState,
  time: number,
  nowMs: number,
): boolean {
  return heartbeat !== undefined && (time - storedTime >= heartbeat * 1_000 || nowMs - storedMs >= heartbeat);
}
