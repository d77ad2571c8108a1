// Validates a data frame by hand: the schema of `integration.insert` would take seconds for 1.5 million values.
import { isInputId } from "../../core/point.ts";
import { sameLength } from "../../wire/results.ts";
import { parseTimestamp } from "../../wire/timestamp.ts";
import type { BlockColumns } from "../store/point-block.ts";
import { ColumnFrame } from "./insert-reader.ts";
import { requiredMembers } from "./params.ts";
import type { Faults } from "./rpc-fault.ts";

export const inputIdFault = "must be an Input ID: 1 to 128 characters of a-z A-Z 0-9 - _ : . # + /";

/** Points by ascending time for each key, the last of equal times. Created on demand, to save memory. */
type CheckedFrame = ReadonlyMap<string, () => BlockColumns>;

/** Reads `data` at `path` of the params. The result is only valid without faults. */
export function checkFrame(data: unknown, path: string, faults: Faults): CheckedFrame {
  const frame = new Map<string, () => BlockColumns>();
  if (data instanceof ColumnFrame) {
    const { times, series } = data;
    const order = ascending(times) ? undefined : stableOrder(times);
    for (const [key, values] of series) frame.set(key, () => columnsOf(times, values, order));
    return frame;
  }
  const members = requiredMembers(data, path, faults);
  if (!members) return frame;
  const times = checkTimes(members["times"], `${path}.times`, faults);
  const series = requiredMembers(members["series"], `${path}.series`, faults) ?? {};
  const order = ascending(times) ? undefined : stableOrder(times);
  for (const key of Object.keys(series)) {
    const at = `${path}.series.${key}`;
    if (!isInputId(key)) faults.add(at, inputIdFault);
    const values = series[key];
    if (!Array.isArray(values)) faults.add(at, "must be an array");
    else if (checkValues(values, at, faults) && values.length !== times.length) faults.add(at, sameLength);
    else if (!faults.any) frame.set(key, () => columnsOf(times, values, order));
  }
  return frame;
}

function checkTimes(times: unknown, path: string, faults: Faults): Float64Array {
  if (!Array.isArray(times)) {
    faults.add(path, times === undefined ? "required" : "must be an array");
    return new Float64Array();
  }
  const micros = new Float64Array(times.length);
  for (let i = 0; i < times.length; i++) {
    const text: unknown = times[i];
    const time = typeof text === "string" ? parseTimestamp(text) : undefined;
    if (time === undefined) faults.add(`${path}.${i}`, "must be an RFC 3339 timestamp");
    else if (!Number.isSafeInteger(time)) faults.add(`${path}.${i}`, "must be between the years 1685 and 2255");
    else micros[i] = time;
  }
  return micros;
}

/** Whether every value is null or a finite number. */
function checkValues(values: readonly unknown[], path: string, faults: Faults): boolean {
  let good = true;
  for (let i = 0; i < values.length; i++) {
    const value = values[i];
    if (value === null || (typeof value === "number" && Number.isFinite(value))) continue;
    good = false;
    faults.add(
      `${path}.${i}`,
      typeof value === "number" ? "must be within the range of a double" : "must be a number or null",
    );
  }
  return good;
}

/** Null and NaN mean no value. Returns the given arrays if there is nothing to drop or sort. */
function columnsOf(
  times: Float64Array,
  values: ArrayLike<number | null>,
  order: Uint32Array | undefined,
): BlockColumns {
  if (order === undefined && values instanceof Float64Array && !values.includes(Number.NaN)) return { times, values };
  const outTimes = new Float64Array(times.length);
  const outValues = new Float64Array(times.length);
  let count = 0;
  for (let i = 0; i < times.length; i++) {
    const from = order === undefined ? i : order[i]!;
    const value = values[from] ?? Number.NaN;
    if (Number.isNaN(value)) continue;
    const time = times[from]!;
    if (count > 0 && outTimes[count - 1] === time) count--;
    outTimes[count] = time;
    outValues[count++] = value;
  }
  return count === times.length
    ? { times: outTimes, values: outValues }
    : { times: outTimes.slice(0, count), values: outValues.slice(0, count) };
}

function ascending(times: Float64Array): boolean {
  for (let i = 1; i < times.length; i++) if (times[i]! <= times[i - 1]!) return false;
  return true;
}

/** Indices sorted by time; equal times keep their order. */
function stableOrder(times: Float64Array): Uint32Array {
  return Uint32Array.from(times.keys()).sort((a, b) => times[a]! - times[b]! || a - b);
}
