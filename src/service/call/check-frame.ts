// The data frame of an insert: validated by hand, since a schema would take seconds for 1.5 million values, and turned
// into points by series.
import { isInputId } from "../../core/point.ts";
import { sameLength } from "../../wire/results.ts";
import { parseTimestamp } from "../../wire/timestamp.ts";
import type { BlockColumns } from "../store/block-format.ts";
import type { EncodedBlock } from "../store/point-run.ts";
import type { PointRun } from "../store/point-store.ts";
import { requiredMembers } from "./params.ts";
import type { Faults } from "./rpc-fault.ts";

export const inputIdFault = "must be an Input ID: 1 to 128 characters of a-z A-Z 0-9 - _ : . # + /";

/** The points of each key. Created on demand, to save memory. */
type CheckedFrame = ReadonlyMap<string, () => PointRun>;

/** A valid data frame as blocks. The next `readInsert` invalidates it. */
export class EncodedFrame {
  readonly series: ReadonlyMap<string, readonly EncodedBlock[]>;

  constructor(series: ReadonlyMap<string, readonly EncodedBlock[]>) {
    this.series = series;
  }
}

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

/** The times of a data frame, with which its series become points. */
export class FrameTimes {
  readonly #times: Float64Array;
  /** Indices sorted by time. Undefined: the times ascend strictly. */
  readonly #order: Uint32Array | undefined;

  /** `times` in microseconds since the epoch, in any order. */
  constructor(times: Float64Array) {
    this.#times = times;
    // Equal times keep their order.
    if (times.some((time, i) => i > 0 && time <= times[i - 1]!))
      this.#order = Uint32Array.from(times.keys()).sort((a, b) => times[a]! - times[b]! || a - b);
  }

  get length(): number {
    return this.#times.length;
  }

  /**
   * The points of a series by ascending time, the last of equal times. Null and NaN mean no value. Returns the given
   * arrays if there is nothing to drop or sort.
   */
  columnsOf(values: ArrayLike<number | null>): BlockColumns {
    const times = this.#times;
    const order = this.#order;
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
}
