// Everything that is remembered of one input: what was read last, what was stored last, and what is held back.
import type { EpochMicros, InputId } from "../core/point.ts";
import type { PartialSignalMetadata } from "../core/signal.ts";
import type { Quality, TagId } from "../core/source.ts";
import type { RepeatedTime } from "./time-faults.ts";

/** A value and its time, kept apart from points so that nothing is allocated for a reading that is not stored. */
interface Held {
  value: number;
  time: EpochMicros;
  /** When it is due, in milliseconds of the monotonic clock. */
  dueMs: number;
}

/** Of all inputs of which nothing is said: there may be many. */
const nothing: PartialSignalMetadata = {};

/** Mutable on purpose, and always with the same fields: one is touched for every reading. */
export class InputState {
  readonly tag: TagId;
  readonly input: InputId;
  /** Where the values come from; empty while nothing was read. */
  address = "";
  /** The address that feeds this input; others are refused. Empty: no usable value came yet, or the tag is shared. */
  boundTo = "";
  /** What was read last, stored or not. */
  value: number | undefined;
  time: EpochMicros | undefined;
  quality: Quality | undefined;
  reason: string | undefined;
  /** Whether the last reading was of no use, and that was told. */
  failing = false;
  /** Whether every value of a time is stored (`sameTime: keep`). */
  keepsSameTime = false;
  /** Last time given to a reading that carries none of its own, microseconds. */
  arrival = Number.NEGATIVE_INFINITY;
  /** Left out while no reading had the device time of its predecessor and another value. */
  repeated: RepeatedTime | undefined;
  readings = 0;
  stored = 0;
  filtered = 0;
  bad = 0;
  /** A value of this input was rounded and that was said once. */
  roundingTold = false;

  /** What the device says of the signal, and its range. */
  device: PartialSignalMetadata = nothing;
  range: { readonly min: number; readonly max: number } | undefined;
  /** The two together, and whether the catalog has it. */
  signal: PartialSignalMetadata = nothing;
  described = false;
  /** Words of an enumeration; undefined where the signal is none. */
  states: ReadonlyMap<string, number> | undefined;

  /** In the unit of the signal; NaN while the range that it is a share of is unknown. */
  deadband = 0;
  /** Which uninterrupted stretch the stored value belongs to; 0: there is none. */
  stretch = 0;
  storedValue = 0;
  storedTime = 0;
  /** Milliseconds of the monotonic clock. */
  storedMs = 0;
  /** Until when `minInterval` allows no further point, in the time of the readings, microseconds. */
  windowEnd = 0;
  held: Held | undefined;

  constructor(tag: TagId, input: InputId) {
    this.tag = tag;
    this.input = input;
  }
}
