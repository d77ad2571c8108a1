// Buckets of a rollup. They begin at multiples of their width from an origin, not at the start of the query.

import type { TimeZone } from "../../lib/time/time-zone.ts";
import type { RfcDuration } from "../../wire/rfc-duration.ts";

/** In microseconds since the epoch. */
export interface TimeSpan {
  /** Inclusive. */
  readonly from: number;
  /** Exclusive. */
  readonly before: number;
}

/** The bucket with this time. */
export type BucketOf = (time: number) => TimeSpan;

export interface BucketOptions {
  readonly zone: TimeZone;
  /** 1 Monday to 7 Sunday. */
  readonly firstDayOfWeek: number;
  /** Begin of a bucket in microseconds since the epoch; undefined: the default origin. */
  readonly origin: number | undefined;
}

const hour = 3_600e6;
const day = 24 * hour;
/** 2000-01-01T00:00:00, a Saturday. */
const millennium = Date.UTC(2000, 0, 1) * 1_000;

/** Default origin: the first week start of 2000, for months 2000-01-01. Buckets over an hour follow local time. */
export function bucketsOf(width: RfcDuration, { zone, firstDayOfWeek, origin }: BucketOptions): BucketOf {
  if (width.months !== 0)
    return monthBuckets(width.months, zone, origin === undefined ? millennium : zone.toLocal(origin));
  const { micros } = width;
  const saturday = 6;
  const defaultLocal = millennium + ((firstDayOfWeek - saturday + 7) % 7) * day;
  if (micros <= hour) {
    // Near the epoch, since the distance to an origin in year 1 is not exact in microseconds.
    const first = (origin ?? zone.fromLocal(defaultLocal)) % micros;
    return (time) => {
      const from = first + Math.floor((time - first) / micros) * micros;
      return { from, before: from + micros };
    };
  }
  const first = (origin === undefined ? defaultLocal : zone.toLocal(origin)) % micros;
  return numbered(
    (n) => zone.fromLocal(first + n * micros),
    (time) => Math.floor((zone.toLocal(time) - first) / micros),
  );
}

/** One bucket for everything, with the start of the window. */
export function oneBucket(window: TimeSpan): BucketOf {
  return () => window;
}

/** Buckets that start at `startOf(n)`. `guess` may be off by one where clocks change. */
function numbered(startOf: (n: number) => number, guess: (time: number) => number): BucketOf {
  return (time) => {
    let n = guess(time);
    while (startOf(n) > time) n--;
    while (startOf(n + 1) <= time) n++;
    return { from: startOf(n), before: startOf(n + 1) };
  };
}

function monthBuckets(count: number, zone: TimeZone, originLocal: number): BucketOf {
  const monthOf = (local: number) => {
    const date = new Date(local / 1_000);
    return date.getUTCFullYear() * 12 + date.getUTCMonth();
  };
  const beginOf = (month: number) => Date.UTC(2000, month - 24_000, 1) * 1_000;
  const origin = monthOf(originLocal);
  const intoMonth = originLocal - beginOf(origin);
  return numbered(
    (n) => {
      const month = origin + n * count;
      // On the origin's day, or the last day of a shorter month.
      const lastDay = beginOf(month + 1) - beginOf(month) - day + (intoMonth % day);
      return zone.fromLocal(beginOf(month) + Math.min(intoMonth, lastDay));
    },
    (time) => Math.floor((monthOf(zone.toLocal(time)) - origin) / count),
  );
}
