// Validates a data frame by hand: the schema of `integration.insert` would take seconds for 1.5 million values.
import { isInputId } from "../../core/point.ts";
import { sameLength } from "../../wire/results.ts";
import { parseTimestamp } from "../../wire/timestamp.ts";
import type { PointRun } from "../store/point-store.ts";
import { FrameTimes } from "./frame-times.ts";
import { EncodedFrame } from "./insert-reader.ts";
import { requiredMembers } from "./params.ts";
import type { Faults } from "./rpc-fault.ts";

export const inputIdFault = "must be an Input ID: 1 to 128 characters of a-z A-Z 0-9 - _ : . # + /";

/** The points of each key. Created on demand, to save memory. */
type CheckedFrame = ReadonlyMap<string, () => PointRun>;

/** Reads `data` at `path` of the params. The result is only valid without faults. */
export function checkFrame(data: unknown, path: string, faults: Faults): CheckedFrame {
  const frame = new Map<string, () => PointRun>();
  if (data instanceof EncodedFrame) {
    for (const [key, blocks] of data.series) frame.set(key, () => blocks);
    return frame;
  }
  const members = requiredMembers(data, path, faults);
  if (!members) return frame;
  const times = new FrameTimes(checkTimes(members["times"], `${path}.times`, faults));
  const series = requiredMembers(members["series"], `${path}.series`, faults) ?? {};
  for (const key of Object.keys(series)) {
    const at = `${path}.series.${key}`;
    if (!isInputId(key)) faults.add(at, inputIdFault);
    const values = series[key];
    if (!Array.isArray(values)) faults.add(at, "must be an array");
    else if (checkValues(values, at, faults) && values.length !== times.length) faults.add(at, sameLength);
    else if (!faults.any) frame.set(key, () => times.columnsOf(values));
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
