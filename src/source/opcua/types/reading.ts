// Converts a DataValue to a reading: quality from the status code, time from the most reliable clock. Pure.
import { type EpochMicros, epochMicros } from "../../../core/point.ts";
import type { ReadPlace } from "../../../core/reading.ts";
import type { Quality, Reading } from "../../../core/source.ts";
import { aheadTime, judgeTime, type TimeRule } from "../../../lib/readings/device-time.ts";
import type { PlainNumber, PlainValue } from "./plain-value.ts";
import { type Converted, convert, type VariantLike } from "./value.ts";

/** The fields of a DataValue that the agent uses. Dates have milliseconds; the picoseconds refine them. */
export interface DataValueLike {
  readonly value: VariantLike | null;
  readonly statusCode: { readonly value: number; readonly name: string };
  readonly sourceTimestamp: Date | null;
  readonly sourcePicoseconds: number;
  readonly serverTimestamp: Date | null;
  readonly serverPicoseconds: number;
}

export type NotifiedValue = DataValueLike | PlainValue;

/** Selects the clock that stamps the values, and the usable times. */
export interface TimeOptions extends TimeRule {
  readonly clock: "source" | "server" | "arrival";
}

export interface ReadingOf extends ReadPlace {
  readonly clockCheck: ClockCheck;
  /** Element of an array or matrix: one index from 0 per dimension. */
  readonly index?: readonly number[] | undefined;
  /** Extracts the value. Undefined to use the whole value, or the element at `index`. */
  readonly part?: ((variant: VariantLike | null) => Converted) | undefined;
}

/** OPC 10000-4, 7.39.1: bits 30 and 31 are the severity. `overflowBits`: InfoType DataValue and Overflow. */
const severities: readonly Quality[] = ["good", "uncertain", "bad", "bad"];
const overflowBits = 0x480;
const semanticsChangedBit = 0x4000;
const structureChangedBit = 0x8000;

/** Whether the server discarded earlier values because its queue was full. */
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

/** Undefined while the server waits for its first value. `untimed` if no time is usable and `unusable` is `drop`. */
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

/** Like `toReading`, for items without part or index. Returns only the time of a finite number with a device time. */
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

/** Value changes with an unchanged source time after which that time counts as frozen. */
const frozenAfter = 3;

/** Selects the time to use for each value of one item. */
export class ClockCheck {
  #time = Number.NaN;
  /** The last number. A separate field avoids an allocation per number. */
  #number = 0;
  #other: unknown;
  #frozen = 0;

  /** Returns a bare number for a device time. Undefined if no time is usable and `unusable` is `drop`. */
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
