// What `status` says of an input, taken when asked.
import { type EpochMicros, epochMicros } from "../core/point.ts";
import type { TagId } from "../core/source.ts";
import type { InputState } from "./input-state.ts";
import type { TagState } from "./mapping.ts";
import type { TagRule } from "./options.ts";
import { timeFaultNote } from "./time-faults.ts";

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
  const value = Number.isNaN(state.value) ? undefined : state.value;
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

/** The time of what was read last. */
export function lastTime({ time }: InputState): EpochMicros | undefined {
  return Number.isNaN(time) ? undefined : epochMicros(time);
}

/** What whoever looks should know of an input although nothing is wrong. */
function noteOf(state: InputState): string | undefined {
  // Without its range a dead band in percent lets everything through.
  if (state.report && Number.isNaN(state.report.deadband))
    return "the dead band is in percent, and neither valid nor the device gives a range";
  const fault = timeFaultNote(state);
  if (fault !== undefined) return fault;
  return state.roundingTold ? "integers beyond 2^53 are rounded to the nearest double" : undefined;
}

/** A tag that has no input yet. */
export function unreadTag(tag: TagId, { input, signal }: TagRule): TagState {
  return { ...nothingYet, tag, input, unit: signal.engUnit };
}
