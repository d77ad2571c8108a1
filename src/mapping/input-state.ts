// Everything that is remembered of one input: what was read last, and for `report` what was stored last and is held back.
import type { EpochMicros, InputId } from "../core/point.ts";
import type { PartialSignalMetadata } from "../core/signal.ts";
import type { Quality, TagId } from "../core/source.ts";
import type { RepeatedTime } from "./repeated-time.ts";

/** A tag as its inputs know it. */
export interface InputTag {
  readonly id: TagId;
  readonly source: string;
  /** Whether the tag has `shared: true`. */
  readonly shared: boolean;
  /** Whether every value of a time is stored (`sameTime: keep`). */
  readonly keepsSameTime: boolean;
  /** Another tag was refused the Input ID of `state`, which is one of this tag. */
  contested(state: InputState): void;
}

/** A value and its time, kept apart from points so that nothing is allocated for a reading that is not stored. */
interface Held {
  value: number;
  time: EpochMicros;
  /** When it is due, in milliseconds of the monotonic clock. */
  dueMs: number;
}

/** What the device says of a signal, and the range of its value. */
interface DeviceDescription {
  readonly signal: PartialSignalMetadata;
  readonly range: { readonly min: number; readonly max: number } | undefined;
}

/** Of all inputs of which nothing is said: there may be many. */
const nothing: PartialSignalMetadata = {};

/** Of an input whose tag has `report`. */
export class ReportState {
  readonly of: InputState;
  filtered = 0;
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

  constructor(of: InputState) {
    this.of = of;
  }
}

/**
 * Mutable on purpose, and always with the same fields: one is touched for every reading. What few inputs have stands in
 * objects of its own, since there may be 100,000 inputs.
 */
export class InputState {
  readonly of: InputTag;
  readonly input: InputId;
  /** Where the values come from; empty while nothing was read. */
  address = "";
  /** The address that feeds this input; others are refused. Empty: no usable value came yet, or the tag is shared. */
  boundTo = "";
  /** What was read last, stored or not; NaN: nothing. A field that always holds a double is changed in place. */
  value = Number.NaN;
  time: number = Number.NaN;
  quality: Quality | undefined;
  reason: string | undefined;
  /** Whether the last reading was of no use, and that was told. */
  failing = false;
  /** Last time given to a reading that carries none of its own, microseconds; 0: there was none. */
  arrival = 0;
  /** Left out while no reading had the device time of its predecessor and another value. */
  repeated: RepeatedTime | undefined;
  readings = 0;
  stored = 0;
  bad = 0;
  /** A value of this input was rounded and that was said once. */
  roundingTold = false;

  device: DeviceDescription | undefined;
  /** What configuration and device say together, and whether the catalog has it. */
  signal: PartialSignalMetadata = nothing;
  described = false;
  /** Words of an enumeration; undefined where the signal is none. */
  states: ReadonlyMap<string, number> | undefined;

  /** Undefined: each value is stored. */
  report: ReportState | undefined;

  constructor(of: InputTag, input: InputId) {
    this.of = of;
    this.input = input;
  }

  get tag(): TagId {
    return this.of.id;
  }
}
