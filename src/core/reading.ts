// Readings: values from a device, one by one or in columns.
import type { EpochMicros } from "./point.ts";
import type { Captures, TagId } from "./tag.ts";

/** Quality of a value, in the terms of OPC UA. Drivers map their own onto them. */
export type Quality = "good" | "uncertain" | "bad";

/** One value, or one failure to get it, as a device gave it. */
export interface Reading {
  readonly tag: TagId;
  /**
   * What the tag's template captured; fills `input` and `signal`. Give the same object again for the same captures
   * where that is cheap (one per topic): the mapping remembers its work by it.
   */
  readonly captures: Captures;
  /**
   * Where the value comes from, in the driver's notation: a topic, `hr:40`, a browse path. An Input ID takes the values
   * of one address, so the same thing must have the same address for as long as the tag is configured: across
   * reconnects, restarts of the device, births and aliases. Give the same string object again where that is cheap.
   */
  readonly address: string;
  /** The whole tag fails and there is no value: `address` is what is configured, not an address that was read. */
  readonly wholeTag?: true;
  /** Undefined: there is none, see `reason`. */
  readonly value: number | bigint | boolean | string | undefined;
  readonly time: EpochMicros;
  readonly clock: "device" | "agent";
  /** Set if the device's time is ahead of the agent's clock, so one of the two clocks is wrong. `time` is the time of arrival. */
  readonly ahead?: AheadTime | undefined;
  /**
   * Names the device whose clock gave the time, within its source: readings with one name share a clock. Undefined: all
   * of the source do. Give the same string object again where that is cheap.
   */
  readonly device?: string | undefined;
  readonly quality: Quality;
  /**
   * Why there is no value, why its quality is not good, or how it differs from the configuration. For people; starts in
   * lower case.
   */
  readonly reason?: string;
  /** Read from the device's history: stored, but no news (last value and report-by-exception stay untouched). */
  readonly historical: boolean;
}

/** A device's time that is ahead, until it is known which clock is wrong. */
export interface AheadTime {
  readonly time: EpochMicros;
  /** How far ahead it may be, in milliseconds. */
  readonly maxAhead: number;
  /** What becomes of the reading if the agent's clock is right. If that is not trusted, the reading gets `time`. */
  readonly otherwise: "arrival" | "drop";
}

/** Where the values of one place in a list come from: see `Reading`. */
export interface ReadPlace {
  readonly tag: TagId;
  readonly captures: Captures;
  readonly address: string;
}

/**
 * Values that were read together. All are good, finite and news; a reading of which that is not true stands in `apart`.
 *
 *   places   hr:0   hr:1   hr:2   hr:3      the same array for the same places: the mapping remembers its work by it
 *   rows        0      1      3             left out: 0, 1, 2, …
 *   values   21.5    NaN    230
 *   apart           1 → { value: undefined, quality: "bad", … }
 */
export interface ReadingBatch {
  readonly places: readonly ReadPlace[];
  /** By position in `values`: the index in `places`. Left out: the same. */
  readonly rows?: Uint32Array | undefined;
  readonly values: Float64Array;
  /** The values are 0 and 1 and stand for false and true. */
  readonly booleans?: boolean | undefined;
  /** Microseconds, as `Reading.time`: one for all, or one for each value. */
  readonly times: EpochMicros | Float64Array;
  readonly clock: Reading["clock"];
  readonly device?: string | undefined;
  /** By position in `values`: the reading that stands there instead. */
  readonly apart?: ReadonlyMap<number, Reading> | undefined;
}
