// A DataValue as a reading: its quality from the status code, its time from the clock that can be believed. Pure.
import type { EpochMicros } from "../../../core/point.ts";
import { epochMicros } from "../../../core/point.ts";
import type { Captures, Quality, Reading, TagId } from "../../../core/source.ts";
import { aheadTime, judgeTime, type TimeRule } from "../../../lib/device-time.ts";
import { type Converted, convert, type VariantLike } from "./value.ts";

/** What is used of a DataValue. Times are in milliseconds, with what is left over in picoseconds. */
export interface DataValueLike {
  readonly value: VariantLike | null;
  readonly statusCode: { readonly value: number; readonly name: string };
  readonly sourceTimestamp: Date | null;
  readonly sourcePicoseconds: number;
  readonly serverTimestamp: Date | null;
  readonly serverPicoseconds: number;
}

/** Which clock stamps the values, and which of its times are usable. */
export interface TimeOptions extends TimeRule {
  readonly clock: "source" | "server" | "arrival";
}

/** What a reading is of, and what is remembered from one to the next. */
export interface ReadingOf {
  readonly tag: TagId;
  readonly captures: Captures;
  readonly address: string;
  readonly clockCheck: ClockCheck;
  /** Element of an array or matrix, from 0, a number for each dimension. */
  readonly index?: readonly number[] | undefined;
  /** Takes the value out of what came; undefined: it is the value, or the element at `index`. */
  readonly part?: ((variant: VariantLike | null) => Converted) | undefined;
}

/** OPC 10000-4, 7.39.1: the two upper bits are the severity; InfoType DataValue with Overflow are the lower ones. */
const severities: readonly Quality[] = ["good", "uncertain", "bad", "bad"];
const overflowBits = 0x480;
const semanticsChangedBit = 0x4000;
const structureChangedBit = 0x8000;

/** Whether the server threw values away before this one because its queue was full. */
export function overflowed(statusCode: number): boolean {
  return (statusCode & overflowBits) === overflowBits;
}

/** Whether unit, range or enumeration have changed. */
export function semanticsChanged(statusCode: number): boolean {
  return (statusCode & semanticsChangedBit) !== 0;
}

/** Whether the data type has changed. */
export function structureChanged(statusCode: number): boolean {
  return (statusCode & structureChangedBit) !== 0;
}

/**
 * Undefined where there is nothing to tell yet: the server has not got its first value. `untimed`: there is no usable time,
 * and the value is not to be stored then.
 */
export function toReading(
  data: DataValueLike,
  of: ReadingOf,
  arrival: EpochMicros,
  times: TimeOptions,
): Reading | "untimed" | undefined {
  const name = data.statusCode.name.split("#")[0] || hex(data.statusCode.value);
  if (name === "BadWaitingForInitialData" || name === "UncertainInitialValue") return undefined;
  const quality = severities[data.statusCode.value >>> 30] ?? "bad";
  const converted = of.part ? of.part(data.value) : convert(data.value, of.index);
  const reason = quality === "good" ? undefined : `the server reports ${name}`;
  const problem = "reason" in converted ? converted.reason : undefined;
  const value = "value" in converted ? converted.value : undefined;
  const stamp = of.clockCheck.stamp(data, value, arrival, times);
  if (stamp === undefined) return "untimed";
  return {
    tag: of.tag,
    captures: of.captures,
    address: of.address,
    value,
    ...stamp,
    quality: value === undefined ? "bad" : quality,
    ...((reason ?? problem) !== undefined && { reason: reason ?? problem ?? "" }),
    historical: false,
  };
}

function hex(status: number): string {
  return `0x${(status >>> 0).toString(16).padStart(8, "0")}`;
}

/** Changes in a row with one and the same source time: the source does not stamp, it repeats. */
const frozenAfter = 3;

/** Decides for one item which of its times to believe. */
export class ClockCheck {
  #last: { readonly time: number; readonly value: unknown } | undefined;
  #frozen = 0;

  /** Undefined: none can be believed, and the value is to be dropped then. */
  stamp(
    data: DataValueLike,
    value: unknown,
    arrival: EpochMicros,
    times: TimeOptions,
  ): Pick<Reading, "time" | "clock" | "ahead"> | undefined {
    const source = micros(data.sourceTimestamp, data.sourcePicoseconds);
    const frozen = this.#isFrozen(source, value);
    if (times.clock === "arrival") return { time: arrival, clock: "agent" };
    const first = times.clock === "source" && !frozen ? source : undefined;
    const server = micros(data.serverTimestamp, data.serverPicoseconds);
    const firstVerdict = first === undefined ? "past" : judgeTime(first, arrival, times);
    if (first !== undefined && firstVerdict === "usable") return { time: first, clock: "device" };
    const serverVerdict = server === undefined ? "past" : judgeTime(server, arrival, times);
    if (server !== undefined && serverVerdict === "usable") return { time: server, clock: "device" };
    const later = firstVerdict === "ahead" ? first : serverVerdict === "ahead" ? server : undefined;
    const ahead = later === undefined ? undefined : aheadTime(later, times);
    if (ahead) return { time: arrival, clock: "agent", ahead };
    return times.unusable === "drop" ? undefined : { time: arrival, clock: "agent" };
  }

  #isFrozen(time: EpochMicros | undefined, value: unknown): boolean {
    if (time === undefined) return false;
    const repeats = this.#last?.time === time;
    if (!repeats) this.#frozen = 0;
    else if (this.#last?.value !== value) this.#frozen++;
    this.#last = { time, value };
    return this.#frozen >= frozenAfter;
  }
}

function micros(time: Date | null, picoseconds: number): EpochMicros | undefined {
  return time ? epochMicros(time.getTime() * 1_000 + Math.floor((picoseconds ?? 0) / 1e6)) : undefined;
}
