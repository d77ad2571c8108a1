// Which points a data query is about: from when to when, how they are rolled up, and which series come back.

import { timeZone, utc } from "../../lib/time-zone.ts";
import { parseRfcDuration } from "../../wire/rfc-duration.ts";
import { parseTimestamp } from "../../wire/timestamp.ts";
import { isRecord } from "../call/check-frame.ts";
import type { Faults } from "../call/rpc-fault.ts";
import { readFlag } from "../call/save-view.ts";
import { type BucketOf, type BucketOptions, bucketsOf, oneBucket, type Rollup } from "./buckets.ts";
import { readInteger } from "./resource-query.ts";

export interface DataQuery {
  readonly include: boolean;
  /** Microseconds since the epoch; inclusive. */
  readonly from: number;
  /** Exclusive. */
  readonly before: number;
  readonly rollup: Rollup;
  readonly buckets: BucketOptions;
  /** Only series with these keys; undefined: all. */
  readonly series: ReadonlySet<string> | undefined;
  /** Only so many of the last points of each series; undefined: all. */
  readonly last: number | undefined;
}

const day = 86_400e6;
const defaultBuckets: BucketOptions = { zone: utc, firstDayOfWeek: 1, origin: undefined };

/**
 * Reads `data` of the specification's dialect. Default window: the 14 days that began 7 days ago. `calendar`: rollups
 * may be of months and years, as from 1.1 on.
 */
export function readSpecifiedDataQuery(data: unknown, now: number, calendar: boolean, faults: Faults): DataQuery {
  const members = membersOf(data, "data", faults);
  const include = readFlag(members["include"], "data.include", faults);
  const from = readTime(members["notBefore"], "data.notBefore", faults) ?? now - 7 * day;
  const before = readTime(members["before"], "data.before", faults) ?? from + 14 * day;
  const rollup = readRollup(members["rollup"], calendar, faults);
  if (include) checkWindow(from, before, rollup, [[60e6, 400]], 400, "data.before", faults);
  return { include, from, before, rollup, buckets: defaultBuckets, series: undefined, last: undefined };
}

/** Reads `data` of the current dialect. Default window: 7 days before and after now. */
export function readCurrentDataQuery(data: unknown, now: number, faults: Faults): DataQuery {
  const members = membersOf(data, "data", faults);
  const filter = membersOf(members["filter"], "data.filter", faults);
  const times = membersOf(filter["times"], "data.filter.times", faults);
  for (const key of Object.keys(filter))
    if (key !== "times" && key !== "series") faults.add(`data.filter.${key}`, "can be times or series");
  for (const key of Object.keys(times))
    if (key !== "$gte" && key !== "$lt") faults.add(`data.filter.times.${key}`, "can be $gte or $lt");
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
  const last = readInteger(members["last"], "data.last", -1, faults);
  return {
    include: true,
    from,
    before,
    rollup,
    buckets: readBuckets(members, faults),
    series: readSeries(filter["series"], faults),
    last: last > 0 ? last : undefined,
  };
}

/** Buckets of a query; undefined for points as they are. */
export function bucketsOfQuery({ rollup, buckets, from, before }: DataQuery): BucketOf | undefined {
  if (rollup === null) return undefined;
  return rollup === "window" ? oneBucket({ start: from, end: before }) : bucketsOf(rollup, buckets);
}

function membersOf(value: unknown, path: string, faults: Faults): Readonly<Record<string, unknown>> {
  if (value === undefined || value === null) return {};
  if (isRecord(value)) return value;
  faults.add(path, "must be an object");
  return {};
}

/** A client sends the first moment of year 1 for a time it was not given. */
const zeroTime = parseTimestamp("0001-01-01T00:00:00Z");

function readTime(value: unknown, path: string, faults: Faults): number | undefined {
  if (value === undefined || value === null) return undefined;
  const time = typeof value === "string" ? parseTimestamp(value) : undefined;
  if (time === undefined) faults.add(path, "must be an RFC 3339 timestamp or null");
  return time === zeroTime ? undefined : time;
}

function readRollup(value: unknown, calendar: boolean, faults: Faults): Rollup {
  if (value === undefined || value === null || (calendar && value === "")) return null;
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

/** `widest`: a rollup of at least so many microseconds may span so many days; longest first. */
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

function readBuckets(members: Readonly<Record<string, unknown>>, faults: Faults): BucketOptions {
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
  for (const key of Object.keys(members)) if (key !== "$in") faults.add(`data.filter.series.${key}`, "can be $in");
  const keys = members["$in"];
  if (keys === undefined || keys === null) return undefined;
  if (Array.isArray(keys) && keys.every((key): key is string => typeof key === "string")) return new Set(keys);
  faults.add("data.filter.series.$in", "must be an array of texts");
  return undefined;
}
