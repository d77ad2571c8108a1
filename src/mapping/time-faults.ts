// Finds inputs whose device clock stands still, and inputs whose values often share a time.
import type { RateLimitedLog } from "../lib/rate-limited-log.ts";
import type { InputState } from "./input-state.ts";
import type { TimeFault, TimeFaults } from "./mapping.ts";
import { RepeatedTime } from "./repeated-time.ts";

const forgetMs = 3_600_000;
/** Most faults of a source that are listed; the others are counted. */
const maxListed = 100;

/** The inputs of one source that had a repeated time lately. */
export class TimeFaultFinder {
  readonly #log: RateLimitedLog;
  readonly #inputs = new Set<InputState>();

  constructor(log: RateLimitedLog) {
    this.#log = log;
  }

  /** Call for each reading that has the device time of its predecessor and another value. */
  add(state: InputState, nowMs: number): void {
    state.repeated ??= new RepeatedTime(state.readings);
    this.#inputs.add(state);
    state.repeated.add(state.readings, nowMs);
    this.#report(state, state.repeated);
  }

  list(nowMs: number): TimeFaults {
    const counts = { standing: 0, repeats: 0 };
    const first: TimeFault[] = [];
    for (const state of this.#inputs) {
      const { tag, input, address, repeated } = state;
      if (repeated === undefined || nowMs - repeated.lastMs > forgetMs) {
        state.repeated = undefined;
        this.#inputs.delete(state);
        continue;
      }
      const fault = faultOf(state);
      if (fault === undefined) continue;
      counts[fault.kind]++;
      if (first.length < maxListed) first.push({ tag, input, address, ...fault });
    }
    return { ...counts, first };
  }

  #report(state: InputState, repeated: RepeatedTime): void {
    if (repeated.standingLogged) return;
    const fault = faultOf(state);
    if (fault === undefined || (fault.kind === "repeats" && repeated.repeatsLogged)) return;
    const { input, address } = state;
    const fields = { input, address, readings: fault.readings };
    if (fault.kind === "standing") {
      repeated.standingLogged = true;
      this.#log.warn(
        { ...fields, seconds: Math.round(fault.forMs / 1_000) },
        "a device clock stands still; set the clock, or another `time` or `sameTime: keep` on the tag",
      );
      return;
    }
    repeated.repeatsLogged = true;
    this.#log.warn(
      { ...fields, repeats: fault.repeats },
      "values often have the time of the one before and replace it; if each counts, set `sameTime: keep` or another `time` on the tag, or the device's clock",
    );
  }
}

/** For the tag's row in the status. */
export function timeFaultNote(state: InputState): string | undefined {
  const fault = faultOf(state);
  if (fault === undefined) return undefined;
  return fault.kind === "standing"
    ? `the device clock stands still: ${fault.readings} readings in ${Math.round(fault.forMs / 1_000)} s have one time`
    : `${fault.repeats} of ${fault.readings} readings have the time of the one before and replace its value`;
}

function faultOf({ repeated, readings, of }: InputState) {
  return repeated?.fault(readings, of.keepsSameTime);
}
