// Decides whether a device's time is stored. All protocols with device times share this rule.
import { z } from "zod";
import { type EpochMicros, epochMicros } from "../../core/point.ts";
import type { AheadTime } from "../../core/source.ts";
import { duration } from "../values/fields.ts";

/** Devices whose clock was never set report times before 2000. */
const earliest = Date.UTC(2000, 0, 1) * 1_000;
/** A larger number cannot represent a microsecond exactly. */
const latest = Number.MAX_SAFE_INTEGER;

const defaultMaxAheadMs = 300_000;

export interface TimeRule {
  /** What happens to a value whose time is not usable. */
  readonly unusable: "arrival" | "drop" | "keep";
  /** Largest accepted lead over the agent's clock, in milliseconds. */
  readonly maxAhead: number;
}

export const defaultTimeRule: TimeRule = { unusable: "arrival", maxAhead: defaultMaxAheadMs };

/** Fields of a `time` option that form a `TimeRule`. */
export const timeRuleFields = {
  unusable: z
    .enum(["arrival", "drop", "keep"])
    .default(defaultTimeRule.unusable)
    .describe(
      "What becomes of a value whose time is missing, unreadable, before 2000 or more than `maxAhead` ahead: arrival stores it with the time of arrival, drop does not store it, keep stores it with the device's time where there is one. A time that is ahead is also kept while the clock of this machine is not trusted.",
    ),
  maxAhead: duration({ min: 0, max: 315_360_000_000 })
    .default(defaultMaxAheadMs)
    .describe("How far ahead of this machine's clock the time of a device may be; default 5m.")
    .meta({ examples: ["5m", "1h"] }),
};

/** Whether the device's time is stored, or why not. `now`: arrival by the agent's clock. Both times in microseconds. */
export function judgeTime(time: number, now: number, { unusable, maxAhead }: TimeRule): "usable" | "past" | "ahead" {
  if (time - now <= maxAhead * 1_000) {
    if (time >= earliest) return "usable";
    return unusable === "keep" && time >= 0 ? "usable" : "past";
  }
  return unusable === "keep" && time <= latest ? "usable" : "ahead";
}

/** The `AheadTime` of a reading. Undefined: `time` is beyond the range of any clock. */
export function aheadTime(time: number, { unusable, maxAhead }: TimeRule): AheadTime | undefined {
  if (!(time <= latest)) return undefined;
  return { time: epochMicros(time), maxAhead, otherwise: unusable === "drop" ? "drop" : "arrival" };
}

/** Whether a time is still ahead of the arrival, after the agent's clock was corrected. */
export function isStillAhead({ time, maxAhead }: AheadTime, arrival: EpochMicros): boolean {
  return time - arrival > maxAhead * 1_000;
}
