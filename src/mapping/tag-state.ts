// Snapshots of inputs for `status`, and detection of device clocks that stand still or repeat times.
import { type EpochMicros, epochMicros } from "../core/point.ts";
import type { RateLimitedLog } from "../lib/flow/rate-limited-log.ts";
import { InputState, RepeatedTime } from "./input-state.ts";
import type { InputTimeFault, Mapping, TagState, TimeFaults } from "./mapping.ts";
import type { TagInputs } from "./tag-inputs.ts";

const nothingYet = {
  resolved: false,
  address: "",
  value: undefined,
  text: undefined,
  time: undefined,
  quality: undefined,
  reason: undefined,
  readings: 0,
  stored: 0,
  filtered: 0,
  bad: 0,
} as const;

export function tagState(state: InputState): TagState {
  const { tag, input, address, quality, reason, readings, stored, bad, signal, report } = state;
  const value = lastValue(state);
  const text = value === undefined || signal.type !== "enum" ? undefined : signal.enumValues?.[value];
  return {
    tag,
    input,
    resolved: true,
    address,
    value,
    text,
    unit: signal.engUnit,
    time: lastTime(state),
    quality,
    reason: reason ?? noteOf(state),
    readings,
    stored,
    filtered: report?.filtered ?? 0,
    bad,
  };
}

function lastValue({ value }: InputState): number | undefined {
  return Number.isNaN(value) ? undefined : value;
}

export function lastTime({ time }: InputState): EpochMicros | undefined {
  return Number.isNaN(time) ? undefined : epochMicros(time);
}

/** A remark for the status about an input that works. */
function noteOf(state: InputState): string | undefined {
  // A dead band in percent has no effect without a range.
  if (state.report && Number.isNaN(state.report.deadband))
    return "the dead band is in percent, and neither valid nor the device gives a range";
  const fault = faultOf(state);
  if (fault?.kind === "standing")
    return `the device clock stands still: ${fault.readings} readings in ${Math.round(fault.forMs / 1_000)} s have one time`;
  if (fault)
    return `${fault.repeats} of ${fault.readings} readings have the time of the one before and replace its value`;
  return state.roundingLogged ? "integers beyond 2^53 are rounded to the nearest double" : undefined;
}

/** Counts are dropped this long after the last repeat. Only inputs with the fault take memory. */
const forgetMs = 3_600_000;
/** Faults that a source lists. Others are only counted. */
const maxListed = 100;

/** The inputs of one source that repeated a time recently. */
export class TimeFaultFinder {
  readonly #log: RateLimitedLog;
  readonly #inputs = new Set<InputState>();

  constructor(log: RateLimitedLog) {
    this.#log = log;
  }

  /** Call for each reading that has the device time of its predecessor and another value. */
  add(state: InputState, nowMs: number): void {
    const repeated = (state.repeated ??= new RepeatedTime(state.readings));
    this.#inputs.add(state);
    repeated.add(state.readings, nowMs);
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

  list(nowMs: number): TimeFaults {
    const counts = { standing: 0, repeats: 0 };
    const first: InputTimeFault[] = [];
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
}

function faultOf({ repeated, readings, of }: InputState) {
  return repeated?.fault(readings, of.rule.sameTime === "keep");
}

export function tagsIn(inputs: readonly TagInputs[], first: number, count: number): ReturnType<Mapping["tagsIn"]> {
  const tags: TagState[] = [];
  let total = 0;
  for (const tag of inputs) {
    const { id, rule, size } = tag;
    const own = Math.max(1, size);
    if (total + own > first && tags.length < count) {
      const from = Math.max(0, first - total);
      const room = count - tags.length;
      if (size === 0) tags.push({ ...nothingYet, tag: id, input: rule.input, unit: rule.signal.engUnit });
      // A tag may have 100,000 inputs: creates objects only for the requested ones.
      else for (const state of tag.inputs().drop(from).take(room)) tags.push(tagState(state));
    }
    total += own;
  }
  return { total, tags };
}

export function eachValue(
  tags: readonly TagInputs[],
  most: number,
  each: (input: string, value: number | undefined) => void,
): number {
  let count = 0;
  const of = (state: InputState) => {
    count++;
    each(state.input, state.failing ? undefined : lastValue(state));
  };
  for (const tag of tags) {
    if (count >= most) break;
    const { only, size, rule } = tag;
    if (only instanceof InputState) of(only);
    else if (size > 0) for (const state of tag.inputs().take(most - count)) of(state);
    else {
      count++;
      each(rule.input, undefined);
    }
  }
  return count;
}
