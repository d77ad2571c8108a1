// Options and environment of the store and its parts.
import type { PointCounters } from "../counters/point-counters.ts";
import type { Disk, Notes } from "../files/disk.ts";
import type { InputTable } from "../format/input-table.ts";
import type { Segment } from "./segment.ts";

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
  /** Maximum points in a record of a cold segment. Undefined: the compactor's default. */
  readonly coldPoints?: number | undefined;
}

export interface LogEnvironment {
  readonly disk: Disk;
  /** Random integers from 0 to below 2^32. */
  readonly random32: () => number;
  readonly note: Notes;
}

/** The time of a call: wall time in microseconds, monotonic time in milliseconds. */
export interface TimestampPair {
  readonly wall: number;
  readonly monotonic: number;
}

export interface LogParts extends LogEnvironment {
  readonly folder: string;
  /** UUID of the buffer, 32 hexadecimal digits. */
  readonly stream: string;
  readonly integration: string;
  readonly inputs: InputTable;
  readonly counters: PointCounters;
  /** Ordered by sequence number. */
  readonly segments: Segment[];
}
