// Report by exception: decides which readings of an input become points, and when.
//
//   stored ──┬── differs by more than the dead band, or heartbeat elapsed ──► minInterval elapsed? ── yes ─► stored
//            │                                                                         no ─► held; the newest wins
//            └── otherwise ─► filtered (and a held point is dropped: the value has returned)
//
// Intervals are measured in the time of the readings, so an hour of messages that a broker kept is not thinned to one
// second's worth. The monotonic clock only decides when the last point of a burst is due. A device clock that is set
// back starts a new interval.
import type { EpochMicros } from "../core/point.ts";
import type { InputState, ReportState } from "./input-state.ts";

type Emit = (state: InputState, time: EpochMicros, value: number) => void;

/** Held points of all inputs become due together at multiples of this, in milliseconds. */
const dueGridMs = 50;

export class Reporter {
  readonly #emit: Emit;
  readonly #held = new Set<ReportState>();
  #epoch = 1;
  #nextDue: number | undefined;

  constructor(emit: Emit) {
    this.#emit = emit;
  }

  /** Forces the next reading of every input to be stored. */
  interrupt(): void {
    this.#epoch++;
  }

  take(state: ReportState, time: EpochMicros, value: number, nowMs: number): void {
    if (state.epoch !== this.#epoch) {
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

  /** Stores the last value again if the heartbeat has elapsed. Called if the device is alive and sent no change. */
  emitHeartbeat(state: ReportState, time: EpochMicros, nowMs: number): void {
    const { heartbeat } = state.rule;
    if (heartbeat === undefined || state.epoch !== this.#epoch || state.held) return;
    if (nowMs - state.storedMs >= heartbeat && time > state.storedTime)
      this.#store(state, time, state.storedValue, nowMs);
  }

  /** Monotonic milliseconds; undefined: no point is held. */
  get nextDue(): number | undefined {
    return this.#nextDue;
  }

  /** Stores the points due at `nowMs`; infinity stores all. */
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
    state.epoch = this.#epoch;
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

  /** Stores the held point. The next interval starts at the end of this one. */
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

/** Tolerates rounding errors: 0.3 and 0.1 do not differ by more than 0.2. */
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
