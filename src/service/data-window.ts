// Which points a data query is about: from when to when, and how they are rolled up.
import { parseRfcDuration } from "../wire/rfc-duration.ts";
import { parseTimestamp } from "../wire/timestamp.ts";
import { isRecord } from "./check-frame.ts";
import type { Faults } from "./rpc-fault.ts";
import { readFlag } from "./save-view.ts";

/** Null: the points themselves. `window`: one bucket. Else the width of a bucket in microseconds. */
export type Rollup = null | "window" | { readonly micros: number };

export interface DataWindow {
  readonly include: boolean;
  /** Microseconds since the epoch; inclusive. */
  readonly from: number;
  /** Exclusive. */
  readonly before: number;
  readonly rollup: Rollup;
}

const day = 86_400e6;
const minute = 60e6;

/** Reads `data` of the specification's dialect. Default window: the 14 days that began 7 days ago. */
export function readDataWindow(data: unknown, now: number, faults: Faults): DataWindow {
  if (data !== undefined && data !== null && !isRecord(data)) faults.add("data", "must be an object");
  const members = isRecord(data) ? data : {};
  const include = readFlag(members["include"], "data.include", faults);
  const from = readTime(members["notBefore"], "data.notBefore", faults) ?? now - 7 * day;
  const before = readTime(members["before"], "data.before", faults) ?? from + 14 * day;
  const rollup = readRollup(members["rollup"], faults);
  const maxDays = rollup === null || (rollup !== "window" && rollup.micros < minute) ? 40 : 400;
  if (include && before - from > maxDays * day)
    faults.add(
      "data.before",
      maxDays === 40
        ? "window must be at most 40 days without rollup or with one shorter than a minute"
        : "window must be at most 400 days",
    );
  return { include, from, before, rollup };
}

/** A client sends the first moment of year 1 for a time it was not given. */
const zeroTime = parseTimestamp("0001-01-01T00:00:00Z");

function readTime(value: unknown, path: string, faults: Faults): number | undefined {
  if (value === undefined || value === null) return undefined;
  const time = typeof value === "string" ? parseTimestamp(value) : undefined;
  if (time === undefined) faults.add(path, "must be an RFC 3339 timestamp or null");
  return time === zeroTime ? undefined : time;
}

function readRollup(value: unknown, faults: Faults): Rollup {
  if (value === undefined || value === null) return null;
  if (value === "window") return "window";
  const duration = typeof value === "string" ? parseRfcDuration(value) : undefined;
  if (duration === undefined || duration.months !== 0)
    faults.add("data.rollup", 'must be RFC 3339 duration in range week to fraction, "window" or null');
  else if (duration.micros <= 0) faults.add("data.rollup", "must be longer than zero");
  else return { micros: duration.micros };
  return null;
}
