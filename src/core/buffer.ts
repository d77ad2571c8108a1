// The contract of the buffer: stores points durably, and leases them in blocks until they are settled.
import type { Block, BlockId } from "./block.ts";
import type { EpochMicros, InputId, Point, PointBatch } from "./point.ts";

/** Settles series of a block: their points were delivered or refused for good, so the buffer may delete them. */
export interface Settlement {
  readonly block: BlockId;
  /** The series to settle. Settlements of several blocks may share one array. */
  readonly inputs: readonly InputId[];
  /** How many of the points the service refused for good; the others were delivered. Undefined: none. */
  readonly refused?: number;
}

export type Lane = "live" | "backlog";

export interface AppendOptions {
  /** True: a device waits for the acknowledgement; sync after `ackDelay`. False: sync within `sync`. */
  readonly awaited: boolean;
  /** As `Delivery.hurry`: the points may wait longer for others, and are synced without delay once it resolves. */
  readonly hurry?: Promise<void> | undefined;
}

export interface TakeOptions {
  /** False: `take` does not wait. True: it waits, and the live lane also returns late points if there are no others. */
  readonly wait: boolean;
  /** Most points of the block. Exceeded only if a single series of one record has more. */
  readonly maxPoints: number;
  /** The block ends at the first record boundary at which it has this many points. Undefined: `maxPoints`. */
  readonly enough?: number | undefined;
  /** Lease only these series; the others remain available. */
  readonly inputs?: readonly InputId[] | undefined;
  /** Lease all but these series, which remain available. */
  readonly except?: readonly InputId[] | undefined;
}

/** Append-only log of points with settled ranges. Implementations pass `test/contract/buffer.ts`. */
export interface PointBuffer extends AsyncDisposable {
  /**
   * Resolves once `points` survive a power cut. Rejects with `BUFFER_UNAVAILABLE` (disk full or broken; then none or a
   * prefix was stored, and the caller tries again) or with `signal.reason`. Calls may overlap; those that do are
   * stored in the order of the calls and share a sync.
   */
  append(points: readonly Point[] | PointBatch, options: AppendOptions, signal: AbortSignal): Promise<void>;
  /**
   * Opens the only reader. After a restart it leases all unsettled points again. Rejects with `BUFFER_FOREIGN` if the
   * backlog belongs to another integration.
   */
  reader(): Promise<BufferReader>;
  stats(): BufferStats;
}

export interface BufferReader extends AsyncDisposable {
  /**
   * Leases a block of durable points that are neither settled nor leased, of the series that `inputs` and `except`
   * select. `live`: the newest points without late ones; a back end that cannot read backwards returns points appended
   * since it was opened. `backlog`: the oldest points, as many as `maxPoints` allows. Resolves when there is a block,
   * or undefined at once with `wait: false`. Rejects with `signal.reason`. Calls may overlap: blocks are leased and
   * returned in the order of the calls. With `inputs` it may find nothing for a
   * while if very many series are leased or settled separately. Calls without `inputs` still succeed, and free the
   * memory that it needs.
   */
  take(lane: Lane, options: TakeOptions, signal: AbortSignal): Promise<Block | undefined>;
  /**
   * Settles series of leased blocks. Resolves once the settlement survives a kill of the process; a power cut may undo
   * the last 10 s. The buffer deletes a segment when all of its points are settled. The settlement of a late series
   * takes effect only after all points of its input in blocks leased earlier are settled. If such a block is released,
   * or leased again after a restart, the late points are leased again after it.
   */
  settle(done: readonly Settlement[]): Promise<void>;
  /** Ends the lease of blocks without settling them: either lane may lease their points again. */
  release(blocks: readonly BlockId[]): void;
}

/** A run of lost points. Between `from` and `to`, no point of the lost series was delivered. */
export interface LossInterval {
  /** Ascends over the life of the buffer. An interval with the number of an earlier one replaces it and has grown. */
  readonly number: number;
  readonly points: number;
  /** Times of its earliest and latest point. Undefined: no longer known. */
  readonly from: EpochMicros | undefined;
  readonly to: EpochMicros | undefined;
}

export interface Loss {
  readonly reason: string;
  readonly points: number;
  /** Points that were reported as lost and were found later. `points` does not include them. */
  readonly found?: number | undefined;
  /** Times of the earliest and latest lost point. Points in between may have been delivered, see `intervals`. */
  readonly from: EpochMicros | undefined;
  readonly to: EpochMicros | undefined;
  /** The 32 most recent intervals, oldest first. */
  readonly intervals: readonly LossInterval[];
}

/** All counts are since the buffer was created unless said otherwise; `unsettledPoints` is now. */
export interface BufferStats {
  /** Bytes of the segments on disk now. */
  readonly bytes: number;
  readonly segments: number;
  readonly appendedPoints: number;
  readonly settledPoints: number;
  readonly refusedPoints: number;
  /** Points neither settled, refused nor lost, including leased points of a dropped segment. */
  readonly unsettledPoints: number;
  /** Time of the oldest unsettled point. */
  readonly oldest: EpochMicros | undefined;
  /** Points that repeat the newest time and value of their input. They are stored once. */
  readonly duplicatePoints: number;
  /** Points that replace the newest point of their input, or are shifted past it with `sameTime: keep`. */
  readonly collidedPoints: number;
  readonly losses: readonly Loss[];
  /** Why appends fail at present. Undefined: they succeed. */
  readonly degraded: string | undefined;
}
