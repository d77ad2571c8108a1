// The log as a whole: appends points, leases blocks, enforces the limits, and persists what is settled. It is
// synchronous and has no clock of its own, so that one thread can run it and a test can stop it at any disk call.
import type { BufferStats } from "../../../core/buffer.ts";
import { AgentError, reasonOf } from "../../../core/errors.ts";
import { epochMicros } from "../../../core/point.ts";
import type { Taken, TakeRequest } from "../blocks/block-cut.ts";
import { LeaseTable } from "../blocks/lease-table.ts";
import { InputTable, type PointColumns } from "../format/input-table.ts";
import { recover } from "../recovery/recovery.ts";
import { keptFile } from "../segments/kept-times.ts";
import { type BlockSettlement, InputMarks } from "../segments/late-points.ts";
import type { LogEnvironment, Segment, StoreOptions, TimestampPair } from "../segments/segment.ts";
import { repairSegment } from "../segments/segment-writer.ts";
import { openCompactor, openScrubber } from "./background-work.ts";
import { checkpointWriter, retentionPolicy } from "./retention.ts";
import { segmentLog } from "./segment-log.ts";

/** The active segment is sealed at this fraction of `maxAge`, so that one drop by age loses few points. */
const agePart = 30;

export type Store = ReturnType<typeof openSegmentStore>;

/** Throws `BUFFER_NEWER`, `BUFFER_OLDER`, or the disk's error if the folder cannot be used at all. */
export function openSegmentStore(options: StoreOptions, environment: LogEnvironment, opened: TimestampPair) {
  const { folder, segmentBytes, maxAgeMs, coldPoints } = options;
  const { disk, note } = environment;
  const newStream = Array.from({ length: 4 }, () => environment.random32().toString(16).padStart(8, "0")).join("");
  const recovered = recover({ ...environment, folder, integration: options.integration, newStream });
  const { counters, segments, integration, stream, stateFile, uptime: uptimeBefore } = recovered;
  const inputs = new InputTable();
  const parts = { ...environment, folder, stream, integration, inputs, counters, segments };
  const leases = new LeaseTable(parts);
  const checkpoints = checkpointWriter({ ...parts, leases, stateFile, uptimeBefore, opened: opened.monotonic });
  const upkeep = { ...parts, leases, checkpoints };
  const retention = retentionPolicy(options, upkeep);
  const marks = new InputMarks(latestUnsettled(segments, opened));
  const keptTimes = keptFile({ ...parts, kept: marks.kept });
  const log = segmentLog({ ...upkeep, segmentBytes, retention, beforeSeal: (next) => keptTimes.sealing(next) });
  const scrub = openScrubber(upkeep);
  const compactor = openCompactor({ ...upkeep, coldPoints });
  const begun = counters.next;
  let degraded: string | undefined;
  let oldest: { readonly time: number | undefined } | undefined;

  /** The floor marks points as late because of points from before the start. It is removed once these are settled. */
  function lowerFloor(): void {
    if (!segments.some(({ first, unsettledPoints }) => first < begun && unsettledPoints > 0))
      marks.floor = Number.NEGATIVE_INFINITY;
  }

  function sealWhenOld(now: TimestampPair): void {
    const { active } = log;
    if (!active || active.unsettledPoints === 0) return;
    if (now.wall - active.header.created > (maxAgeMs / agePart) * 1_000) log.seal();
  }

  function describe(error: unknown): string {
    return error instanceof AgentError ? error.message : `cannot write to ${folder}: ${reasonOf(error)}`;
  }

  function noteAppended(times: Float64Array): void {
    const known = oldest?.time;
    if (known === undefined) oldest = undefined;
    else for (let i = 0; i < times.length; i++) if (times[i]! < known) oldest = undefined;
  }

  function oldestUnsettled() {
    if (!oldest) {
      let time = Number.POSITIVE_INFINITY;
      for (const segment of segments) time = Math.min(time, segment.oldestUnsettled() ?? time);
      oldest = { time: Number.isFinite(time) ? time : undefined };
    }
    return oldest.time === undefined ? undefined : epochMicros(oldest.time);
  }

  keptTimes.restore(segments, (segment) => leases.index(segment));
  // The segments that this restore has read may be removed from here on.
  keptTimes.sealing(counters.next);
  checkpoints.persist(opened);
  return {
    inputs,
    /** Integration ID of the stored points, if it is not the configured one. */
    foreign: integration === options.integration ? undefined : integration,
    /**
     * The points are durable when it returns. Changes `group`. If it throws `BUFFER_UNAVAILABLE`, none of the points or
     * a prefix is stored, and the caller may append all of them again.
     */
    append(group: PointColumns, now: TimestampPair): void {
      const admission = marks.admit(group);
      try {
        if (marks.kept.unnamed.size > 0) keptTimes.nameNew(counters.next);
        log.append(group, admission, now);
      } catch (error) {
        marks.undo(group, admission);
        oldest = undefined;
        degraded = describe(error);
        throw new AgentError("BUFFER_UNAVAILABLE", degraded, { cause: error });
      }
      degraded = undefined;
      noteAppended(group.times.subarray(0, admission.count));
      counters.duplicates += admission.duplicates;
      counters.collided += admission.collided;
      counters.changed = true;
    },
    take: (request: TakeRequest): Taken => leases.take(request),
    /** Whether the last read of any segment failed. */
    get isUnread(): boolean {
      return leases.isUnread;
    },
    /** `write: false`: does not write to the disk; the next due state includes the settlement. */
    settle(done: readonly BlockSettlement[], write = true): void {
      const hasDropped = leases.settle(done);
      if (write) checkpoints.writeSettled(hasDropped);
      oldest = undefined;
    },
    release: (blocks: Iterable<number>): void => leases.release(blocks),
    releaseAll: (): void => leases.releaseAll(),
    /** Background work of about 10 ms. Returns whether there is more. */
    work(now: TimestampPair): boolean {
      const more = compactor.step(now);
      scrub(now);
      return more;
    },
    /** To be called every few seconds: enforces the limits, writes the state, and recovers from disk errors. */
    tick(now: TimestampPair): void {
      for (const segment of segments) if (segment.needsRepair) repairSegment(segment, disk);
      try {
        log.leaveDeleted(now);
        retention.dropOld(now);
        retention.makeRoom(0, now);
        sealWhenOld(now);
        if (degraded !== undefined) {
          log.heal(now);
          degraded = undefined;
          note("info", {}, "the buffer takes points again");
        }
      } catch (error) {
        degraded = describe(error);
      }
      oldest = undefined;
      lowerFloor();
      checkpoints.persistWhenDue(now);
    },
    stats: (): BufferStats => ({
      bytes: checkpoints.bytes(),
      segments: segments.length,
      appendedPoints: counters.appended,
      settledPoints: counters.settled,
      refusedPoints: counters.refused,
      unsettledPoints: counters.unexplained(0),
      oldest: oldestUnsettled(),
      duplicatePoints: counters.duplicates,
      collidedPoints: counters.collided,
      losses: counters.losses.list(),
      degraded,
    }),
    close(now: TimestampPair): void {
      compactor.stop();
      leases.releaseAll();
      log.seal();
      checkpoints.persist(now);
    },
  };
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
