// What the store and its parts are given: options, environment, what they share, and the time of each call.
import type { Accounts } from "../accounts/accounts.ts";
import type { Disk, Notes } from "../files/disk.ts";
import type { InputTable } from "../format/input-table.ts";
import type { Checksum } from "../format/record.ts";
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

/** What the parts of one open log share. */
export interface LogParts extends Ground {
  readonly folder: string;
  /** UUID of the buffer, 32 hexadecimal digits. */
  readonly stream: string;
  /** Integration ID that the points belong to. */
  readonly integration: string;
  readonly inputs: InputTable;
  readonly accounts: Accounts;
  /** By sequence number. */
  readonly segments: Segment[];
}
