// The points of a data query: window, rollup and series. Buckets of a rollup begin at multiples of their width from an
// origin, not at the start of the window.
import { type TimeZone, timeZone, utc } from "../../lib/time/time-zone.ts";
import { parseRfcDuration, type RfcDuration } from "../../wire/rfc-duration.ts";
import { parseTimestamp } from "../../wire/timestamp.ts";
import { isGiven, type Members, membersOf, readFlag, readInteger } from "../call/params.ts";
import type { Faults } from "../call/rpc-fault.ts";

export interface DataQuery extends TimeSpan {
  readonly include: boolean;
  /** The bucket of a time; undefined without a rollup. */
  readonly bucketOf: BucketOf | undefined;
  /** Whether the window is one bucket. */
  readonly isWindow: boolean;
  /** Keys of the wanted series; undefined: all. */
  readonly series: ReadonlySet<string> | undefined;
  /** Number of last points of each series; undefined: all. */
  readonly last: number | undefined;
  /** Whether to add the nearest point (or bucket with points) on each side of the window. */
  readonly outsidePoints: boolean;
}

/** Null: raw points. `window`: one bucket. Otherwise the bucket width: a fixed duration, or months. */
type Rollup = null | "window" | RfcDuration;

const hour = 3_600e6;
const day = 24 * hour;
const defaultBuckets: BucketOptions = { zone: utc, firstDayOfWeek: 1, origin: undefined };

/** Reads `data` of the specification's dialect. Default window: 14 days, centred on now. `calendar`: allow months. */
export function readSpecifiedDataQuery(data: unknown, now: number, calendar: boolean, faults: Faults): DataQuery {
  const members = membersOf(data, "data", faults);
  const include = readFlag(members["include"], "data.include", faults);
  const from = readTime(members["notBefore"], "data.notBefore", faults) ?? now - 7 * day;
  const before = readTime(members["before"], "data.before", faults) ?? from + 14 * day;
  const rollup = readRollup(members["rollup"], calendar, faults);
  if (include) checkWindow(from, before, rollup, [[60e6, 400]], 400, "data.before", faults);
  return {
    include,
    ...rolledUp(from, before, rollup, defaultBuckets),
    series: undefined,
    ...readRows(members, faults),
  };
}

/** Reads `data` of the current dialect. Default window: 7 days before and after now. */
export function readCurrentDataQuery(data: unknown, now: number, faults: Faults): DataQuery {
  const members = membersOf(data, "data", faults);
  const filter = membersOf(members["filter"], "data.filter", faults);
  const times = membersOf(filter["times"], "data.filter.times", faults);
  allow(filter, "data.filter", ["times", "series"], faults);
  allow(times, "data.filter.times", ["$gte", "$lt"], faults);
  const gte = readTime(times["$gte"], "data.filter.times.$gte", faults);
  const lt = readTime(times["$lt"], "data.filter.times.$lt", faults);
  const from = gte ?? (lt === undefined ? now - 7 * day : lt - 14 * day);
  const before = lt ?? (gte === undefined ? now + 7 * day : gte + 14 * day);
  const rollup = readRollup(members["rollup"], true, faults);
  const widest: readonly (readonly [number, number])[] = [
    [30 * day, 3_660],
    [day, 1_900],
    [60e6, 400],
  ];
  checkWindow(from, before, rollup, widest, Number.POSITIVE_INFINITY, "data.filter.times", faults);
  return {
    include: true,
    ...rolledUp(from, before, rollup, readBuckets(members, faults)),
    series: readSeries(filter["series"], faults),
    ...readRows(members, faults),
  };
}

/** Members of the current dialect. The specified one accepts them too, since the timeline page uses them. */
function readRows(members: Members, faults: Faults): Pick<DataQuery, "last" | "outsidePoints"> {
  const last = readInteger(members["last"], "data.last", -1, faults);
  const outsidePoints = readFlag(members["outsidePoints"], "data.outsidePoints", faults);
  return { last: last > 0 ? last : undefined, outsidePoints };
}

function rolledUp(from: number, before: number, rollup: Rollup, buckets: BucketOptions) {
  const isWindow = rollup === "window";
  const ofWidth = rollup === null || isWindow ? undefined : bucketsOf(rollup, buckets);
  return { from, before, isWindow, bucketOf: isWindow ? oneBucket({ from, before }) : ofWidth };
}

function allow(members: Members, path: string, known: readonly string[], faults: Faults): void {
  for (const key of Object.keys(members))
    if (!known.includes(key)) faults.add(`${path}.${key}`, `can be ${known.join(" or ")}`);
}

/** A client sends the first moment of year 1 for an unset time. */
const zeroTime = parseTimestamp("0001-01-01T00:00:00Z");

function readTime(value: unknown, path: string, faults: Faults): number | undefined {
  if (!isGiven(value)) return undefined;
  const time = typeof value === "string" ? parseTimestamp(value) : undefined;
  if (time === undefined) faults.add(path, "must be an RFC 3339 timestamp or null");
  return time === zeroTime ? undefined : time;
}

function readRollup(value: unknown, calendar: boolean, faults: Faults): Rollup {
  if (!isGiven(value) || (calendar && value === "")) return null;
  if (value === "window") return "window";
  const duration = typeof value === "string" ? parseRfcDuration(value) : undefined;
  const range = `must be RFC 3339 duration in range ${calendar ? "year" : "week"} to fraction, "window" or null`;
  if (duration === undefined || (duration.months !== 0 && !calendar)) faults.add("data.rollup", range);
  else if (duration.months !== 0 && duration.micros !== 0)
    faults.add("data.rollup", "can not combine month or year components with day or time components");
  else if (duration.months <= 0 && duration.micros <= 0) faults.add("data.rollup", "must be longer than zero");
  else return duration;
  return null;
}

/** `widest`: pairs of a minimum rollup in microseconds and the window limit in days, longest rollup first. */
function checkWindow(
  from: number,
  before: number,
  rollup: Rollup,
  widest: readonly (readonly [micros: number, days: number])[],
  window: number,
  path: string,
  faults: Faults,
): void {
  const width = rollup === null || rollup === "window" ? 0 : rollup.micros + rollup.months * 30 * day;
  const days = rollup === "window" ? window : (widest.find(([least]) => width >= least)?.[1] ?? 40);
  if (before - from > days * day)
    faults.add(path, `window must be at most ${days} days${rollup === null ? " without rollup" : " with this rollup"}`);
}

function readBuckets(members: Members, faults: Faults): BucketOptions {
  const name = members["timeZone"] ?? "UTC";
  const zone = typeof name === "string" ? timeZone(name === "" ? "UTC" : name) : undefined;
  if (!zone) faults.add("data.timeZone", "must be a name of the tz database, as in Europe/Oslo");
  const firstDayOfWeek = readInteger(members["firstDayOfWeek"], "data.firstDayOfWeek", 1, faults) || 1;
  if (firstDayOfWeek < 1 || firstDayOfWeek > 7)
    faults.add("data.firstDayOfWeek", "must be from 1, Monday, to 7, Sunday");
  const origin = members["origin"] === "" ? undefined : readTime(members["origin"], "data.origin", faults);
  return { zone: zone ?? utc, firstDayOfWeek, origin };
}

function readSeries(value: unknown, faults: Faults): ReadonlySet<string> | undefined {
  const members = membersOf(value, "data.filter.series", faults);
  allow(members, "data.filter.series", ["$in"], faults);
  const keys = members["$in"];
  if (!isGiven(keys)) return undefined;
  if (Array.isArray(keys) && keys.every((key): key is string => typeof key === "string")) return new Set(keys);
  faults.add("data.filter.series.$in", "must be an array of texts");
  return undefined;
}

/** In microseconds since the epoch. */
export interface TimeSpan {
  /** Inclusive. */
  readonly from: number;
  /** Exclusive. */
  readonly before: number;
}

/** The bucket with this time. */
export type BucketOf = (time: number) => TimeSpan;

interface BucketOptions {
  readonly zone: TimeZone;
  /** 1 Monday to 7 Sunday. */
  readonly firstDayOfWeek: number;
  /** Begin of a bucket in microseconds since the epoch; undefined: the default origin. */
  readonly origin: number | undefined;
}

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
