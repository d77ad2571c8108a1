// Finds and parses the times of values in payloads.
import { type EpochMicros, epochMicros } from "../../../core/point.ts";
import type { AheadTime } from "../../../core/source.ts";
import { aheadTime, defaultTimeRule, judgeTime, type TimeRule } from "../../../lib/readings/device-time.ts";
import { formatDuration } from "../../../lib/time/duration.ts";
import type { TimeZone } from "../../../lib/time/time-zone.ts";
import { parseDecimal } from "../../../lib/values/decimal-text.ts";
import { follow, type JsonPath, scalarText } from "./json-path.ts";
import { PayloadError } from "./payload.ts";

/** Converts a number to microseconds since 1970. Undefined: the format has no numeric times. */
type FromNumber = (value: number | bigint, zone: TimeZone | undefined, now: number) => number | undefined;

const formats = {
  auto: (value): number => formats[byMagnitude(Number(value))](value),
  // 1767225600.62 s is not an exact double, so the nearest microsecond is used.
  unixS: (value) => Math.round(Number(value) * 1e6),
  unixMs: (value) => Math.round(Number(value) * 1e3),
  unixUs: (value) => Math.round(Number(value)),
  unixNs: (value) => (typeof value === "bigint" ? Number(value / 1_000n) : Math.floor(value / 1_000)),
  iso: () => undefined,
  rfc1123: () => undefined,
  // Days since 1899-12-30 in local time.
  excel: (value, zone, now) => inZone(Math.round((Number(value) - 25_569) * 86_400_000) * 1_000, zone, now),
  // Units of 100 ns since the years 1 and 1601.
  dotnet: (value) => ticksSince(62_135_596_800_000_000n, value),
  filetime: (value) => ticksSince(11_644_473_600_000_000n, value),
} as const satisfies Record<string, FromNumber>;
type TimeFormat = keyof typeof formats;
export const timeFormats = Object.keys(formats) as readonly TimeFormat[]; // its own keys

/** Why a payload has no usable time. */
export interface TimeFault {
  readonly kind: (typeof timeFaults)[number];
  /** For people, in lower case. Becomes part of a reading's `reason`. */
  readonly text: string;
  /** The time, if its only fault is being ahead. It is stored while the agent's clock is not trusted. */
  readonly ahead?: AheadTime | undefined;
  /** The malformed element of the payload that has the time. Nothing is stored then. */
  readonly malformed?: PayloadError;
}
export const timeFaults = ["missing", "unreadable", "past", "future"] as const;

const noTime: TimeFault = { kind: "missing", text: "the payload has no time" };

/** The part of a tag's field `time` that locates the time in a document. */
interface TimeField extends TimeRule {
  readonly at?: JsonPath | JsonPath[] | undefined;
  readonly date?: JsonPath | undefined;
  readonly fraction?: { readonly at: JsonPath; readonly unit: keyof typeof unitMicros } | undefined;
  readonly format: TimeFormat;
  readonly zone?: TimeZone | undefined;
}

export const unitMicros = { s: 1e6, ms: 1e3, us: 1, ns: 1e-3 } as const;

/** The time at `field.at`, or its fault. Undefined: the tag has no such place. `keys`: as in `follow`. */
export function timeIn(
  document: unknown,
  field: TimeField,
  keys: readonly string[],
  now: EpochMicros,
): EpochMicros | TimeFault | undefined {
  const { at } = field;
  if (at === undefined) return undefined;
  if (!Array.isArray(at)) return timeAt(document, at, field, keys, now);
  let fault = noTime;
  for (const place of at) {
    const found = timeAt(document, place, field, keys, now);
    if (typeof found === "number") return found;
    if (fault.kind === "missing") fault = found;
  }
  return fault;
}

function timeAt(
  document: unknown,
  place: JsonPath,
  field: TimeField,
  keys: readonly string[],
  now: EpochMicros,
): EpochMicros | TimeFault {
  const { date, fraction, format, zone } = field;
  const found = follow(document, place, keys);
  if (found instanceof PayloadError) return { kind: "unreadable", text: `the ${found.message}`, malformed: found };
  const whole = writtenTime(date ? joined(follow(document, date, keys), found) : found, format, zone, now);
  if (typeof whole !== "number") return whole;
  // A missing fraction is zero, since some devices omit zeros.
  const part = fraction ? (follow(document, fraction.at, keys) ?? 0) : 0;
  const micros = fraction ? Math.floor(Number(part) * unitMicros[fraction.unit]) : 0;
  if (micros >= 0 && micros < 1e6) return timeInRange(whole + micros, now, field);
  return { kind: "unreadable", text: `the fraction of the second in the payload, ${brief(part)}, is none` };
}

/** Joins date and time of day. A numeric time such as 90000 has lost its leading zero. */
function joined(date: unknown, time: unknown): string | undefined {
  const [day, hour] = [scalarText(date), scalarText(time)];
  if (day === undefined || hour === undefined) return undefined;
  return `${day} ${typeof time === "number" ? hour.padStart(6, "0") : hour}`;
}

/**
 * Parses a time. Returns a fault if `value` is invalid or `rule` rejects the time. `zone` applies to texts without a
 * zone and to Excel days; undefined: UTC.
 */
export function payloadTime(
  value: unknown,
  format: TimeFormat,
  zone: TimeZone | undefined,
  now: EpochMicros,
  rule: TimeRule = defaultTimeRule,
): EpochMicros | TimeFault {
  const micros = writtenTime(value, format, zone, now);
  return typeof micros === "number" ? timeInRange(micros, now, rule) : micros;
}

/** The parsed time in microseconds without a plausibility check, or a fault. */
function writtenTime(
  value: unknown,
  format: TimeFormat,
  zone: TimeZone | undefined,
  now: EpochMicros,
): number | TimeFault {
  if (value === undefined || value === null) return noTime;
  const micros = toMicros(value, format, zone, now);
  if (micros !== undefined && !Number.isNaN(micros)) return micros;
  return { kind: "unreadable", text: `the time in the payload, ${brief(value)}, is none of format ${format}` };
}

/** `micros` as a time, or a fault if `rule` rejects it. */
export function timeInRange(micros: number, now: EpochMicros, rule: TimeRule): EpochMicros | TimeFault {
  const verdict = judgeTime(micros, now, rule);
  if (verdict === "usable") return epochMicros(micros);
  const text = `the time in the payload, ${shown(micros)}, is`;
  if (verdict === "past") return { kind: "past", text: `${text} before 2000` };
  const ahead = aheadTime(micros, rule);
  return { kind: "future", text: `${text} more than ${formatDuration(rule.maxAhead)} ahead`, ...(ahead && { ahead }) };
}

/** Reason of a reading that has the time of arrival because of `fault`. */
export function arrivalTaken({ text }: TimeFault): string {
  return `${text}; the time of arrival is taken`;
}

/** For messages. */
function brief(value: unknown): string {
  return scalarText(value)?.slice(0, 40) ?? "an object";
}

/** ISO 8601, or seconds if the value is out of range. */
function shown(micros: number): string {
  const date = new Date(micros / 1_000);
  return Number.isNaN(date.getTime()) ? `${micros / 1e6} s` : date.toISOString();
}

/** Microseconds since 1970. NaN or undefined: invalid. */
function toMicros(value: unknown, format: TimeFormat, zone: TimeZone | undefined, now: number): number | undefined {
  if (typeof value === "string") {
    if (format === "rfc1123") return rfc1123Micros(value, zone, now);
    const number = format === "iso" ? undefined : toNumber(value);
    if (number !== undefined) return formats[format](number, zone, now);
    return format === "iso" || format === "auto" ? isoMicros(value, zone, now) : undefined;
  }
  return typeof value === "number" || typeof value === "bigint" ? formats[format](value, zone, now) : undefined;
}

/** `epoch`: microseconds from there to 1970. Their count from there exceeds the exact range of doubles. */
function ticksSince(epoch: bigint, value: number | bigint): number {
  return typeof value === "bigint" ? Number(value / 10n - epoch) : Math.floor(value / 10) - Number(epoch);
}

/** How far the clock of a device may be ahead, in microseconds, for a time to count as come. */
const clockDifferenceUs = 60e6;

/** Of a local time that occurs twice, as the clocks go back: the later time once it has come. */
function inZone(local: number, zone: TimeZone | undefined, now: number): number {
  return zone ? zone.fromLocal(local, now + clockDifferenceUs) : local;
}

/** Correct for times since 1973, and unambiguous until the year 5138. */
function byMagnitude(value: number): "unixS" | "unixMs" | "unixUs" | "unixNs" {
  if (value < 1e11) return "unixS";
  if (value < 1e14) return "unixMs";
  return value < 1e17 ? "unixUs" : "unixNs";
}

function toNumber(text: string): number | bigint | undefined {
  return /^\s*\d+(\.\d*)?\s*$/.test(text) ? parseDecimal(text.trim()) : undefined;
}

const namedZone = /(?:\b(?![AP]M)[A-Z]{1,4}|[+-]\d\d:?\d\d)\s*(?:\(.*\))?\s*$/i;

function rfc1123Micros(text: string, zone: TimeZone | undefined, now: number): number {
  // `Date.parse` would take a time without a zone for one of this machine's zone.
  return namedZone.test(text) ? Date.parse(text) * 1_000 : inZone(Date.parse(`${text} GMT`) * 1_000, zone, now);
}

const iso =
  /^\s*(\d{4})-?(\d\d)-?(\d\d)(?:[T ](\d\d):?(\d\d)(?::?(\d\d)(?:[.,](\d{1,9})\d*)?)?)?\s*(?:(Z|UTC|GMT)|([+-])(\d\d):?(\d\d)?)?\s*$/i;

/** Parses ISO 8601 and RFC 3339. Digits beyond microseconds are truncated. */
function isoMicros(text: string, zone: TimeZone | undefined, now: number): number | undefined {
  const match = iso.exec(text);
  if (!match) return undefined;
  const [
    ,
    year,
    month,
    day,
    hour = "0",
    minute = "0",
    second = "0",
    fraction = "",
    utc,
    sign,
    zoneHours = "0",
    zoneMinutes = "0",
  ] = match;
  const ms = Date.UTC(Number(year), Number(month) - 1, Number(day), Number(hour), Number(minute), Number(second));
  // `Date.UTC` rolls over dates that do not exist, such as 31 June. Leap seconds may roll over.
  if (new Date(Date.UTC(Number(year), Number(month) - 1, Number(day))).getUTCDate() !== Number(day)) return undefined;
  if (Number(month) < 1 || Number(month) > 12 || Number(hour) > 24 || Number(minute) > 59 || Number(second) > 60)
    return undefined;
  const micros = Number(fraction.slice(0, 6).padEnd(6, "0"));
  if (utc === undefined && sign === undefined) return inZone(ms * 1_000, zone, now) + micros;
  // No zone is further than 14 hours from UTC.
  if (Number(zoneHours) > 14 || Number(zoneMinutes) > 59) return undefined;
  const offsetMinutes = (Number(zoneHours) * 60 + Number(zoneMinutes)) * (sign === "-" ? -1 : 1);
  return (ms - offsetMinutes * 60_000) * 1_000 + micros;
}
