// Whether the backlog of the buffer shrinks, with the words for it.
import type { BufferStats } from "../../core/buffer.ts";
import type { EpochMicros } from "../../core/point.ts";
import type { Clock } from "../../core/runtime.ts";
import type { BacklogStatus, UploadState } from "./status.ts";
import { counted, roughSpan } from "./words.ts";

type Counts = Pick<BufferStats, "unsettledPoints" | "appendedPoints" | "losses" | "bytes">;

interface Sample {
  /** Monotonic time in milliseconds. */
  readonly at: number;
  /** Waiting points plus all lost ones, so that dropped points do not count as progress. */
  readonly waiting: number;
  readonly appended: number;
  readonly bytes: number;
}

const windowMs = 60_000;
/** A shorter measurement is too noisy: one request settles thousands of points. */
const leastMs = 20_000;
const everyMs = 1_000;
/** Points that arrive within this many milliseconds are in transit, not a backlog. */
const onItsWayMs = 20_000;
/** A backlog whose oldest point is younger than this is in transit. In microseconds. */
const youngUs = 30e6;

export interface Progress {
  /** Points a second by which the backlog shrinks; negative: it grows. */
  readonly shrinksBy: number;
  /** Whether it still shrank in the last quarter of the measurement. */
  readonly goesOn: boolean;
  /** Appended points a second. */
  readonly arriving: number;
  /** Bytes a second by which the files of the buffer grow; 0 or less: they do not grow. */
  readonly bytesGrowBy: number;
}

/** Whether the backlog shrinks, from its changes over the last minute. Call `sample` about once a second. */
export function backlogTrend(clock: Clock) {
  let samples: readonly Sample[] = [];

  return {
    sample({ unsettledPoints, appendedPoints, losses, bytes }: Counts): void {
      const at = clock.monotonic();
      const last = samples.at(-1);
      if (last && at - last.at < everyMs / 2) return;
      const lost = losses.reduce((sum, { points }) => sum + points, 0);
      const now = { at, waiting: unsettledPoints + lost, appended: appendedPoints, bytes };
      samples = [...samples.filter((each) => each.at >= at - windowMs), now];
    },
    /** Undefined: measured for too short a time. Compares means of both halves, so a single request weighs little. */
    get progress(): Progress | undefined {
      const [first, last] = [samples[0], samples.at(-1)];
      if (!first || !last || last.at - first.at < leastMs) return undefined;
      const [quarter, half] = [samples.length >> 2, samples.length >> 1];
      const earlier = meanOf(samples.slice(0, half));
      const later = meanOf(samples.slice(half));
      return {
        shrinksBy: ((earlier.waiting - later.waiting) * 1_000) / (later.at - earlier.at),
        goesOn: meanOf(samples.slice(-quarter)).waiting < meanOf(samples.slice(half, -quarter)).waiting,
        arriving: ((last.appended - first.appended) * 1_000) / (last.at - first.at),
        bytesGrowBy: ((last.bytes - first.bytes) * 1_000) / (last.at - first.at),
      };
    },
  };
}

function meanOf(samples: readonly Sample[]): Pick<Sample, "at" | "waiting"> {
  const mean = (of: (sample: Sample) => number) => samples.reduce((sum, each) => sum + of(each), 0) / samples.length;
  return { at: mean(({ at }) => at), waiting: mean(({ waiting }) => waiting) };
}

export interface BacklogFacts {
  readonly time: EpochMicros;
  readonly state: UploadState;
  readonly points: number;
  readonly oldest: EpochMicros | undefined;
  /** Inputs whose points wait because the service does not accept them. */
  readonly parkedInputs: number;
  readonly progress: Progress | undefined;
  /** Time between requests, in which points wait without being a backlog. */
  readonly intervalMs: number;
  /** Bytes that the buffer has left. */
  readonly roomBytes: number;
  /** Milliseconds until the oldest point exceeds `buffer.maxAge`. */
  readonly untilTooOldMs: number;
}

/** The backlog in words. A time is estimated only while the backlog shrinks and no input is parked. */
export function backlogStatus(facts: BacklogFacts): BacklogStatus {
  const { time, state, points, oldest, parkedInputs, progress, intervalMs } = facts;
  if (points === 0) return { trend: "none", text: "none" };
  const fullMs = untilFull(facts);
  const full = fullMs === undefined ? {} : { fullMs };
  const soon = fullMs === undefined ? "" : `; buffer full in about ${roughSpan(fullMs)}`;
  if (state !== "delivering" && state !== "standby") return { trend: "unknown", text: `waits${soon}`, ...full };
  const isOnItsWay = points * 1_000 <= (progress?.arriving ?? 0) * (onItsWayMs + intervalMs);
  if (parkedInputs === 0 && (isOnItsWay || (oldest !== undefined && time - oldest < youngUs + intervalMs * 1_000)))
    return { trend: "none", text: "keeps up" };
  const apart =
    parkedInputs === 0 ? "" : `; the points of ${counted(parkedInputs, "input")} wait until the service takes them`;
  if (!progress) return { trend: "unknown", text: `no estimate yet${apart}` };
  const { shrinksBy, goesOn } = progress;
  // Less than one point a second may be measurement noise.
  if (shrinksBy <= -1)
    return { trend: "growing", text: `grows by ${rounded(-shrinksBy)} points/s${soon}${apart}`, ...full };
  if (shrinksBy < 1) return { trend: "steady", text: `does not shrink${apart}` };
  if (!goesOn) return { trend: "unknown", text: `no estimate yet${apart}` };
  if (parkedInputs > 0) return { trend: "shrinking", text: `shrinks by ${rounded(shrinksBy)} points/s${apart}` };
  const drainMs = Math.round((points / shrinksBy) * 1_000);
  return { trend: "shrinking", text: `caught up in about ${roughSpan(drainMs)}`, drainMs };
}

/** At the measured rate of the last minute. Undefined: not measured yet, or the files do not grow. */
function untilFull({ progress, roomBytes, untilTooOldMs }: BacklogFacts): number | undefined {
  if (!progress || progress.bytesGrowBy <= 0) return undefined;
  return Math.round(Math.max(0, Math.min(untilTooOldMs, (roomBytes / progress.bytesGrowBy) * 1_000)));
}

/** Two significant digits; more would change every second. */
function rounded(rate: number): string {
  return String(Number(rate.toPrecision(2)));
}
