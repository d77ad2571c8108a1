// What the store is given: its options, its environment, and the time of each call.
import type { Disk, Notes } from "../files/disk.ts";
import type { Checksum } from "../format/record.ts";

export interface StoreOptions {
  readonly folder: string;
  readonly integration: string;
  /** Bytes. */
  readonly maxSize: number;
  readonly maxAgeMs: number;
  /** Bytes. */
  readonly reserveFreeDisk: number;
  readonly whenFull: "dropOldest" | "block";
  readonly segmentBytes: number;
  /** Points of a record of a cold segment, at most; undefined: as many as are worth it. */
  readonly coldPoints?: number | undefined;
}

/** What the store stands on. */
export interface Ground {
  readonly disk: Disk;
  readonly checksum: Checksum;
  /** Random integers from 0 to below 2^32. */
  readonly random32: () => number;
  readonly note: Notes;
}

/** The time of a call: wall time in microseconds, monotonic time in milliseconds. */
export interface Moment {
  readonly wall: number;
  readonly monotonic: number;
}
