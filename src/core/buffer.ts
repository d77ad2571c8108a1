// The contract of the buffer: points go in and are safe, blocks come out until they are settled.
import type { Block, BlockId } from "./block.ts";
import type { EpochMicros, InputId, Point, PointBatch } from "./point.ts";

/** Series of a block that need not be kept any longer. */
export interface Settlement {
  readonly block: BlockId;
  /** Blocks of which the same series are settled may share the list. */
  readonly inputs: readonly InputId[];
  /** How many of the points the service refused for good; the others it has. Undefined: none. */
  readonly refused?: number;
}

export type Lane = "live" | "backlog";

export interface AppendOptions {
  /** True when a device waits for the acknowledgement: sync after `ackDelay`; else within `sync`. */
  readonly awaited: boolean;
  /** As `Delivery.hurry`: the points may wait longer for others, and are synced without delay once it resolves. */
  readonly hurry?: Promise<void> | undefined;
}

export interface TakeOptions {
  /** False: resolves undefined at once when there is nothing. True: the live lane gives late points, too, when there is nothing else. */
  readonly wait: boolean;
  /** The block has no more, unless a single series of the log's smallest unit has. */
  readonly maxPoints: number;
  /** The block ends at the first border of the log's units at which it has as many. Undefined: `maxPoints`. */
  readonly enough?: number | undefined;
  /** Only these series; the others stay to be taken. */
  readonly inputs?: readonly InputId[] | undefined;
  /** Without these series, which stay to be taken. */
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
  /** The one reader. What is not settled comes again after a restart. Rejects with `BUFFER_FOREIGN` where the backlog is another integration's. */
  reader(): Promise<BufferReader>;
  stats(): BufferStats;
}

export interface BufferReader extends AsyncDisposable {
  /**
   * `live`: the newest not yet leased (a back end that cannot read backwards: whatever was appended since opening), without
   * late points.
   * `backlog`: the oldest, as deep as `maxPoints` allows. Both only of the series that `inputs` and `except` leave. A block
   * is out to one lane at a time. Waits for one, or resolves undefined at once with `wait: false`. Only what is durable is
   * given. Taking by `inputs` may find nothing for a while where very many series are out or settled by themselves: taking
   * without it goes on, and brings the memory back that it needs.
   */
  take(lane: Lane, options: TakeOptions, signal: AbortSignal): Promise<Block | undefined>;
  /**
   * The service has these series of these blocks, or refused them for good. Resolves once that survives the death of the
   * process; a power cut may undo the last 10 s. A segment is freed when all of it is settled. A late series is settled
   * no sooner than the points of its input in blocks taken before: should one of those be released or come again after a
   * restart, the late points come again behind it.
   */
  settle(done: readonly Settlement[]): Promise<void>;
  /** Gives blocks back unsent: they may be taken again, by either lane. */
  release(blocks: readonly BlockId[]): void;
}

/** Lost points that followed each other: of the series that are lost, nothing in between was delivered. */
export interface LossInterval {
  /** Ascends over the life of the buffer. An interval that is given again under its number has grown. */
  readonly number: number;
  readonly points: number;
  /** Times of its earliest and latest point; undefined where nothing tells them any more. */
  readonly from: EpochMicros | undefined;
  readonly to: EpochMicros | undefined;
}

/** Points that will never be delivered, and why. */
export interface Loss {
  readonly reason: string;
  readonly points: number;
  /** Further points that had been reported as lost and were found again since. */
  readonly found?: number;
  /** Times of the earliest and the latest of them: much in between may have been delivered, see `intervals`. */
  readonly from: EpochMicros | undefined;
  readonly to: EpochMicros | undefined;
  /** The last 32, oldest first. */
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
  /** Not settled, refused or lost. Those of a dropped segment whose blocks are out are among them until they are settled or given back. */
  readonly unsettledPoints: number;
  /** Time of the oldest unsettled point. */
  readonly oldest: EpochMicros | undefined;
  /** Repeats of the newest value stored for the newest time of an input: stored once. */
  readonly duplicatePoints: number;
  /** Points with the newest time of their input and another value, which they replace, or are shifted past with `sameTime: keep`. */
  readonly collidedPoints: number;
  readonly losses: readonly Loss[];
  /** Why appending fails now; undefined: it does not. */
  readonly degraded: string | undefined;
}
