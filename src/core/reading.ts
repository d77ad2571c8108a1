// Readings: values from a device, one by one or in columns.
import type { EpochMicros } from "./point.ts";

/** Quality of a value in the terms of OPC UA. Drivers map their own qualities to it. */
export type Quality = "good" | "uncertain" | "bad";

/** One value from a device, or one failure to read it. */
export interface Reading {
  readonly tag: TagId;
  /** Captures of the tag's template. Reuse the object for equal captures: the mapping caches by identity. */
  readonly captures: Captures;
  /**
   * Where the value comes from, in the driver's notation: a topic, `hr:40`, a browse path. An Input ID takes values
   * from one address only. Therefore the address of a thing must stay the same across reconnects, device restarts,
   * births and aliases. Reuse the same string object if that is cheap.
   */
  readonly address: string;
  /** The whole tag fails and has no value. `address` is the configured address, not one that was read. */
  readonly wholeTag?: true;
  /** Undefined: no value, see `reason`. */
  readonly value: number | bigint | boolean | string | undefined;
  readonly time: EpochMicros;
  readonly clock: "device" | "agent";
  /** Set if the device's time is ahead of the agent's clock. One of them is wrong; `time` is the time of arrival. */
  readonly ahead?: AheadTime | undefined;
  /** Names the device clock within the source. Undefined: all readings share one. Reuse the string if cheap. */
  readonly device?: string | undefined;
  readonly quality: Quality;
  /** Why the value is missing, not good or unlike the configuration. For people; starts in lower case. */
  readonly reason?: string;
  /** Read from the device's history. The value is stored but does not change the last value or report-by-exception. */
  readonly historical: boolean;
}

/** A device time that is ahead of the agent's clock. Which clock is wrong is not known yet. */
export interface AheadTime {
  readonly time: EpochMicros;
  /** Largest accepted lead, in milliseconds. */
  readonly maxAhead: number;
  /** Treatment if the agent's clock is right. If that clock is not trusted, the reading gets the `time` above. */
  readonly otherwise: "arrival" | "drop";
}

/** Origin of values. */
export type ReadPlace = Pick<Reading, "tag" | "captures" | "address">;

/**
 * Values that were read together. All are good, finite and not historical. Any other reading is in `apart`.
 *
 *   places   hr:0   hr:1   hr:2   hr:3      reuse the array for the same places: the mapping caches by identity
 *   rows        0      1      3             undefined: 0, 1, 2, …
 *   values   21.5    NaN    230
 *   apart           1 → { value: undefined, quality: "bad", … }
 */
export interface ReadingBatch {
  readonly places: readonly ReadPlace[];
  /** Index into `places` for each value. Undefined: the position of the value. */
  readonly rows?: Uint32Array | undefined;
  readonly values: Float64Array;
  /** True: the values 0 and 1 stand for false and true. */
  readonly booleans?: boolean | undefined;
  /** Microseconds, as `Reading.time`: one time for all values, or one for each. */
  readonly times: EpochMicros | Float64Array;
  readonly clock: Reading["clock"];
  readonly device?: string | undefined;
  /** Position in `values` → the reading that replaces the value. */
  readonly apart?: ReadonlyMap<number, Reading> | undefined;
}

/** Index of a configured tag within its source. */
export type TagId = number & { readonly [tagId]: true };
declare const tagId: unique symbol;

/** What a tag's template captured: levels of a topic, the name of a browsed node. */
export type Captures = Readonly<Record<string, string>>;
