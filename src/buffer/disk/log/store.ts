// The log as a whole: appends points, leases blocks, enforces the limits, and persists what is settled. It is
// synchronous and has no clock of its own, so that one thread can run it and a test can stop it at any disk call.
import type { BufferStats } from "../../../core/buffer.ts";
import { AgentError, reasonOf } from "../../../core/errors.ts";
import { epochMicros } from "../../../core/point.ts";
import type { Taken, TakeRequest } from "../blocks/block-cut.ts";
import { LeaseTable } from "../blocks/lease-table.ts";
import type { PointCounters } from "../counters/point-counters.ts";
import { InputTable, type PointColumns } from "../format/input-table.ts";
import { recover } from "../recovery/recovery.ts";
import { KeptFile } from "../segments/kept-times.ts";
import { type BlockSettlement, InputMarks } from "../segments/late-points.ts";
import type { LogEnvironment, Segment, StoreOptions, TimestampPair } from "../segments/segment.ts";
import { repairSegment } from "../segments/segment-writer.ts";
import { Compactor, openScrubber } from "./background-work.ts";
import { CheckpointWriter, type RetentionPolicy, retentionPolicy } from "./retention.ts";
import { SegmentLog } from "./segment-log.ts";

/** The active segment is sealed at this fraction of `maxAge`, so that one drop by age loses few points. */
const agePart = 30;

export class Store {
  readonly inputs = new InputTable();
  /** Integration ID of the stored points, if it is not the configured one. */
  readonly foreign: string | undefined;
  readonly #options: StoreOptions;
  readonly #environment: LogEnvironment;
  readonly #segments: Segment[];
  readonly #counters: PointCounters;
  readonly #leases: LeaseTable;
  readonly #checkpoints: CheckpointWriter;
  readonly #retention: RetentionPolicy;
  readonly #log: SegmentLog;
  readonly #compactor: Compactor;
  readonly #scrub: (now: TimestampPair) => void;
  readonly #marks: InputMarks;
  readonly #keptFile: KeptFile;
  readonly #begun: number;
  #degraded: string | undefined;
  #oldest: { readonly time: number | undefined } | undefined;

  /** Throws `BUFFER_NEWER`, `BUFFER_OLDER`, or the disk's error if the folder cannot be used at all. */
  constructor(options: StoreOptions, environment: LogEnvironment, now: TimestampPair) {
    const { folder, segmentBytes } = options;
    const { inputs } = this;
    this.#options = options;
    this.#environment = environment;
    const newStream = Array.from({ length: 4 }, () => environment.random32().toString(16).padStart(8, "0")).join("");
    const recovered = recover({ ...environment, folder, integration: options.integration, newStream });
    const { counters, segments, integration, stream, stateFile, uptime: uptimeBefore } = recovered;
    this.foreign = integration === options.integration ? undefined : integration;
    this.#segments = segments;
    this.#counters = counters;
    const log = { ...environment, folder, stream, integration, inputs, counters, segments };
    const leases = new LeaseTable(log);
    const checkpoints = new CheckpointWriter({ ...log, leases, stateFile, uptimeBefore, opened: now.monotonic });
    const parts = { ...log, leases, checkpoints };
    const retention = retentionPolicy(options, parts);
    this.#leases = leases;
    this.#checkpoints = checkpoints;
    this.#retention = retention;
    this.#marks = new InputMarks(latestUnsettled(segments, now));
    this.#keptFile = new KeptFile({ ...log, kept: this.#marks.kept });
    const beforeSeal = (next: number) => this.#keptFile.sealing(next);
    this.#log = new SegmentLog({ ...parts, segmentBytes, retention, beforeSeal });
    this.#scrub = openScrubber(parts);
    this.#compactor = new Compactor({ ...parts, coldPoints: options.coldPoints });
    this.#begun = counters.next;
    this.#keptFile.restore(segments, (segment) => leases.index(segment));
    // The segments that this restore has read may be removed from here on.
    this.#keptFile.sealing(counters.next);
    checkpoints.persist(now);
  }

  /**
   * The points are durable when it returns. Changes `group`. If it throws `BUFFER_UNAVAILABLE`, none of the points or a
   * prefix is stored, and the caller may append all of them again.
   */
  append(group: PointColumns, now: TimestampPair): void {
    const admission = this.#marks.admit(group);
    try {
      if (this.#marks.kept.unnamed.size > 0) this.#keptFile.nameNew(this.#counters.next);
      this.#log.append(group, admission, now);
    } catch (error) {
      this.#marks.undo(group, admission);
      this.#oldest = undefined;
      this.#degraded = this.#describe(error);
      throw new AgentError("BUFFER_UNAVAILABLE", this.#degraded, { cause: error });
    }
    this.#degraded = undefined;
    this.#noteAppended(group.times.subarray(0, admission.count));
    this.#counters.duplicates += admission.duplicates;
    this.#counters.collided += admission.collided;
    this.#counters.changed = true;
  }

  take(request: TakeRequest): Taken {
    return this.#leases.take(request);
  }

  /** Whether the last read of any segment failed. */
  get isUnread(): boolean {
    return this.#leases.isUnread;
  }

  /** `write: false`: does not write to the disk; the next due state includes the settlement. */
  settle(done: readonly BlockSettlement[], write = true): void {
    const hasDropped = this.#leases.settle(done);
    if (write) this.#checkpoints.writeSettled(hasDropped);
    this.#oldest = undefined;
  }

  release(blocks: Iterable<number>): void {
    this.#leases.release(blocks);
  }

  releaseAll(): void {
    this.#leases.releaseAll();
  }

  work(now: TimestampPair): boolean {
    const more = this.#compactor.step(now);
    this.#scrub(now);
    return more;
  }

  /** To be called every few seconds: enforces the limits, writes the state, and recovers from disk errors. */
  tick(now: TimestampPair): void {
    for (const segment of this.#segments) if (segment.needsRepair) repairSegment(segment, this.#environment.disk);
    try {
      this.#log.leaveDeleted(now);
      this.#retention.dropOld(now);
      this.#retention.makeRoom(0, now);
      this.#sealWhenOld(now);
      if (this.#degraded !== undefined) {
        this.#log.heal(now);
        this.#degraded = undefined;
        this.#environment.note("info", {}, "the buffer takes points again");
      }
    } catch (error) {
      this.#degraded = this.#describe(error);
    }
    this.#oldest = undefined;
    this.#lowerFloor();
    this.#checkpoints.persistWhenDue(now);
  }

  stats(): BufferStats {
    const counters = this.#counters;
    return {
      bytes: this.#checkpoints.bytes(),
      segments: this.#segments.length,
      appendedPoints: counters.appended,
      settledPoints: counters.settled,
      refusedPoints: counters.refused,
      unsettledPoints: counters.unexplained(0),
      oldest: this.#oldestUnsettled(),
      duplicatePoints: counters.duplicates,
      collidedPoints: counters.collided,
      losses: counters.losses.list(),
      degraded: this.#degraded,
    };
  }

  close(now: TimestampPair): void {
    this.#compactor.stop();
    this.#leases.releaseAll();
    this.#log.seal();
    this.#checkpoints.persist(now);
  }

  /** The floor marks points as late because of points from before the start. It is removed once these are settled. */
  #lowerFloor(): void {
    if (!this.#segments.some(({ first, unsettledPoints }) => first < this.#begun && unsettledPoints > 0))
      this.#marks.floor = Number.NEGATIVE_INFINITY;
  }

  #sealWhenOld(now: TimestampPair): void {
    const { active } = this.#log;
    if (!active || active.unsettledPoints === 0) return;
    if (now.wall - active.header.created > (this.#options.maxAgeMs / agePart) * 1_000) this.#log.seal();
  }

  #describe(error: unknown): string {
    if (error instanceof AgentError) return error.message;
    return `cannot write to ${this.#options.folder}: ${reasonOf(error)}`;
  }

  #noteAppended(times: Float64Array): void {
    const known = this.#oldest?.time;
    if (known === undefined) this.#oldest = undefined;
    else for (let i = 0; i < times.length; i++) if (times[i]! < known) this.#oldest = undefined;
  }

  #oldestUnsettled() {
    if (!this.#oldest) {
      let time = Number.POSITIVE_INFINITY;
      for (const segment of this.#segments) time = Math.min(time, segment.oldestUnsettled() ?? time);
      this.#oldest = { time: Number.isFinite(time) ? time : undefined };
    }
    return this.#oldest.time === undefined ? undefined : epochMicros(this.#oldest.time);
  }
}

/**
 * The latest time of unsettled segments, found without reading points. If the times of a segment are unknown because it
 * cannot be read, the current time is used.
 */
function latestUnsettled(segments: readonly Segment[], now: TimestampPair): number {
  let latest = Number.NEGATIVE_INFINITY;
  for (const segment of segments)
    if (segment.unsettledPoints > 0) latest = Math.max(latest, segment.latest ?? now.wall);
  return latest;
}
