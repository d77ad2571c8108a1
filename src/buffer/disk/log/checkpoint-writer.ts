// Writes the state and removes settled segments. The order is: write the state, delete the files, sync the folder.

import type { LeaseTable } from "../blocks/lease-table.ts";
import { joinedSpan, type LossReason } from "../counters/point-counters.ts";
import type { BufferState, SegmentState, StateFile } from "../counters/state-file.ts";
import { ifThere, isFull } from "../files/disk.ts";
import type { LogParts, Segment, TimestampPair } from "../segments/segment.ts";

export interface CheckpointWriterOptions extends LogParts {
  readonly leases: LeaseTable;
  readonly stateFile: StateFile;
  /** Milliseconds that the buffer was open in earlier runs, and the monotonic time at which it was opened now. */
  readonly uptimeBefore: number;
  readonly opened: number;
}

/** A changed state is written at the first tick after this time. */
const persistEveryMs = 5_000;

/** Shared by the parts that write, remove, check and compact segments. */
export interface UpkeepParts extends LogParts {
  readonly leases: LeaseTable;
  readonly checkpoints: CheckpointWriter;
}

export class CheckpointWriter {
  readonly #options: CheckpointWriterOptions;
  /** States of removed segments whose folder is not synced yet: a power cut may bring them back. */
  #removed: SegmentState[] = [];
  #persistedAt = Number.NEGATIVE_INFINITY;
  #now: TimestampPair;

  constructor(options: CheckpointWriterOptions) {
    this.#options = options;
    this.#now = { wall: 0, monotonic: options.opened };
  }

  uptime(now: TimestampPair): number {
    return this.#options.uptimeBefore + now.monotonic - this.#options.opened;
  }

  bytes(): number {
    let bytes = 0;
    for (const segment of this.#options.segments) bytes += segment.bytes;
    return bytes;
  }

  persistWhenDue(now: TimestampPair): void {
    const isDue = now.monotonic - this.#persistedAt >= persistEveryMs;
    if (isDue && this.#options.counters.changed) this.persist(now);
  }

  /**
   * Writes the state after points were settled. Without `sync`, it survives a kill but not a power cut. If the write
   * fails, the next due write repeats it.
   */
  writeSettled(sync: boolean): void {
    const { note, stateFile } = this.#options;
    try {
      stateFile.write(this.#state(this.#now), sync);
    } catch (error) {
      note("warn", { err: String(error) }, "the state of the buffer could not be written");
    }
  }

  /** Writes and syncs the state, then removes settled segments. False: not written; the next due write repeats it. */
  persist(now: TimestampPair): boolean {
    const { note } = this.#options;
    this.#persistedAt = now.monotonic;
    try {
      this.#write(now);
    } catch (error) {
      note("warn", { err: String(error) }, "the state of the buffer could not be written");
      // Only a full disk justifies removing segments before the state is written: it could stay full forever.
      if (!isFull(error) || this.#remove() === 0) return false;
      try {
        this.#write(now);
      } catch {
        return false;
      }
    }
    this.#remove();
    return true;
  }

  drop(segment: Segment, reason: LossReason, now: TimestampPair): void {
    const { counters, note, leases } = this.#options;
    let points = 0;
    for (const range of leases.drop(segment, reason).ranges) {
      counters.losses.add(reason, range);
      points += range.points;
    }
    counters.removed.add(segment.first, segment.endSequence, points, reason);
    counters.changed = true;
    const message = reason === "missing" ? "stored points are missing" : "dropped the oldest points";
    if (points > 0) note("error", { points, reason, segment: segment.name }, message);
    this.persist(now);
  }

  /** The next segment to drop: the oldest sealed one with unsettled points, even if it has leased blocks. */
  oldestSealed(): Segment | undefined {
    return this.#options.segments.find(({ sealed, unsettledPoints }) => sealed && unsettledPoints > 0);
  }

  removeSettled(now: TimestampPair): number {
    const before = this.bytes();
    if (this.#options.segments.some(isDone)) this.persist(now);
    return before - this.bytes();
  }

  #write(now: TimestampPair): void {
    const { counters, stateFile } = this.#options;
    this.#now = now;
    stateFile.write(this.#state(now), true);
    counters.changed = false;
  }

  #remove(): number {
    const { counters, disk, folder, note, segments, leases } = this.#options;
    const gone = segments.filter(isDone);
    if (gone.length === 0 && this.#removed.length === 0) return 0;
    try {
      for (const segment of gone) {
        // The file may have been deleted already.
        ifThere(() => disk.remove(segment.path));
        this.#removed.push(stateOf(segment));
        counters.removed.add(segment.first, segment.endSequence);
        segments.splice(segments.indexOf(segment), 1);
        leases.forget(segment);
      }
      disk.syncFolder(folder);
      this.#removed = [];
    } catch (error) {
      note("warn", { err: String(error) }, "a segment could not be removed");
    }
    // The state on disk still lists these segments. The next one drops them, or tries again to sync the folder.
    counters.changed = true;
    return gone.length;
  }

  #state(now: TimestampPair): BufferState {
    const { counters, integration, leases, stream } = this.#options;
    const { opens, next, origin, settled, refused, duplicates, collided, losses } = counters;
    const segments = this.#removed.slice();
    for (const segment of this.#options.segments) if (!segment.settled.isEmpty) segments.push(stateOf(segment));
    const counts = { opens, uptime: this.uptime(now), durable: next, origin, settled, refused, duplicates, collided };
    const newest = this.#options.segments.find(({ sealed }) => !sealed)?.name ?? "";
    const times = timesOf(this.#options.segments);
    const starts = this.#options.segments.map(({ first }) => first);
    const gone = { losses: losses.list(), ...leases.dropped.state() };
    return { stream, ...counts, integration, segments, newest, ...times, ...gone, starts };
  }
}

const isDone = ({ sealed, unsettledPoints }: Segment) => sealed && unsettledPoints === 0;

function stateOf({ name, header, settledBySeries, settled }: Segment): SegmentState {
  return { name, salt: header.salt, settledBySeries, ...settled.state() };
}

function timesOf(segments: readonly Segment[]) {
  let span = joinedSpan(undefined, { points: 0, from: undefined, to: undefined });
  for (const { unsettledPoints, earliest: from, latest: to } of segments)
    if (unsettledPoints > 0) span = joinedSpan(span, { points: 0, from, to });
  return { oldest: span.from, latest: span.to };
}
