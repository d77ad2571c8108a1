// A DataValue as a reading: its quality from the status code, its time from the clock that can be believed. Pure.
import type { EpochMicros } from "../../../core/point.ts";
import { epochMicros } from "../../../core/point.ts";
import type { Captures, Quality, Reading, TagId } from "../../../core/source.ts";
import { aheadTime, judgeTime, type TimeRule } from "../../../lib/device-time.ts";
import type { PlainNumber, PlainValue } from "./plain-value.ts";
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

/** A value as the stack decodes it, or as it is decoded here. */
export type NotifiedValue = DataValueLike | PlainValue;

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

export function structureChanged(statusCode: number): boolean {
  return (statusCode & structureChangedBit) !== 0;
}

/**
 * Undefined where there is nothing to tell yet: the server has not got its first value. `untimed`: there is no usable time,
 * and the value is not to be stored then.
 */
export function toReading(
  data: NotifiedValue,
  of: ReadingOf,
  arrival: EpochMicros,
  times: TimeOptions,
): Reading | "untimed" | undefined {
  const { value: status, name } = data.statusCode;
  const quality = severities[status >>> 30] ?? "bad";
  const bad = quality === "good" ? undefined : name.split("#")[0] || hex(status);
  if (bad === "BadWaitingForInitialData" || bad === "UncertainInitialValue") return undefined;
  const converted = of.part ? of.part(data.value) : convert(data.value, of.index);
  const value = "value" in converted ? converted.value : undefined;
  const problem = "reason" in converted ? converted.reason : undefined;
  const reason = bad === undefined ? problem : `the server reports ${bad}`;
  const stamp = of.clockCheck.stamp(data, value, arrival, times);
  if (stamp === undefined) return "untimed";
  const { tag, captures, address } = of;
  const { time, clock, ahead } = partsOf(stamp);
  const reading = { tag, captures, address, value, time, clock, ahead, quality, historical: false };
  return reason === undefined ? reading : { ...reading, quality: value === undefined ? "bad" : quality, reason };
}

/**
 * As `toReading`, of an item of which neither a part nor an element is taken. Gives the time alone of a finite number with the time
 * of the device.
 */
export function numberReading(
  data: PlainNumber,
  of: ReadingOf,
  arrival: EpochMicros,
  times: TimeOptions,
): EpochMicros | Reading | "untimed" {
  const { number: value } = data;
  const stamp = of.clockCheck.stamp(data, value, arrival, times);
  if (stamp === undefined) return "untimed";
  if (typeof stamp === "number" && Number.isFinite(value)) return stamp;
  const { tag, captures, address } = of;
  return { tag, captures, address, value, ...partsOf(stamp), quality: "good", historical: false };
}

function hex(status: number): string {
  return `0x${(status >>> 0).toString(16).padStart(8, "0")}`;
}

type Stamp = Pick<Reading, "time" | "clock" | "ahead">;

function partsOf(stamp: EpochMicros | Stamp): Stamp {
  return typeof stamp === "number" ? { time: stamp, clock: "device" } : stamp;
}

/** Changes in a row with one and the same source time: the source does not stamp, it repeats. */
const frozenAfter = 3;

/** Decides for one item which of its times to believe. */
export class ClockCheck {
  #time = Number.NaN;
  /** The last value: a number has a field of its own, which takes no memory for each. */
  #number = 0;
  #other: unknown;
  #frozen = 0;

  /** The device's time alone where that is the one. Undefined: none can be believed, and the value is to be dropped then. */
  stamp(
    data: NotifiedValue,
    value: unknown,
    arrival: EpochMicros,
    times: TimeOptions,
  ): EpochMicros | Stamp | undefined {
    const { source, server } = "source" in data ? data : timesOf(data);
    const frozen = this.#isFrozen(source, value);
    if (times.clock === "arrival") return { time: arrival, clock: "agent" };
    const first = times.clock === "source" && !frozen ? source : undefined;
    const firstVerdict = first === undefined ? "past" : judgeTime(first, arrival, times);
    if (first !== undefined && firstVerdict === "usable") return epochMicros(first);
    const serverVerdict = server === undefined ? "past" : judgeTime(server, arrival, times);
    if (server !== undefined && serverVerdict === "usable") return epochMicros(server);
    const later = firstVerdict === "ahead" ? first : serverVerdict === "ahead" ? server : undefined;
    const ahead = later === undefined ? undefined : aheadTime(later, times);
    if (ahead) return { time: arrival, clock: "agent", ahead };
    return times.unusable === "drop" ? undefined : { time: arrival, clock: "agent" };
  }

  #isFrozen(time: number | undefined, value: unknown): boolean {
    if (time === undefined) return false;
    const number = typeof value === "number" ? value : 0;
    const other = typeof value === "number" ? ClockCheck : value;
    if (this.#time !== time) this.#frozen = 0;
    else if (this.#number !== number || this.#other !== other) this.#frozen++;
    this.#time = time;
    this.#number = number;
    this.#other = other;
    return this.#frozen >= frozenAfter;
  }
}

function timesOf(data: DataValueLike): Pick<PlainValue, "source" | "server"> {
  return {
    source: micros(data.sourceTimestamp, data.sourcePicoseconds),
    server: micros(data.serverTimestamp, data.serverPicoseconds),
  };
}

function micros(time: Date | null, picoseconds: number): number | undefined {
  return time ? time.getTime() * 1_000 + Math.floor((picoseconds ?? 0) / 1e6) : undefined;
}
