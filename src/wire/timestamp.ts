// Conversion of RFC 3339 timestamps to microseconds and back. Optimised: a full request has some 330,000 of them.
import { z } from "zod";
import { type EpochMicros, epochMicros } from "../core/point.ts";

/**
 * Parses an RFC 3339 timestamp. Undefined: invalid. Requires an offset or Z, and truncates digits beyond microseconds.
 * Years run from 0 to 9999, but only times within ±2^53 µs (1684 to 2255) are exact.
 */
export function parseTimestamp(text: string): EpochMicros | undefined {
  // `2026-01-02T03:04:05`, the part of fixed width, has 19 characters, and a time zone follows.
  if (text.length < 20) return undefined;
  const year = digits(text, 0, 4);
  const month = digits(text, 5, 2);
  const day = digits(text, 8, 2);
  const hour = digits(text, 11, 2);
  const minute = digits(text, 14, 2);
  const second = digits(text, 17, 2);
  const separator = text.charCodeAt(10);
  if (
    !(year >= 0 && month >= 1 && month <= 12 && day >= 1 && hour >= 0 && hour <= 23) ||
    !(minute >= 0 && minute <= 59 && second >= 0 && second <= 59) ||
    text.charCodeAt(4) !== hyphen ||
    text.charCodeAt(7) !== hyphen ||
    (separator !== 0x54 && separator !== 0x74 && separator !== 0x20) ||
    text.charCodeAt(13) !== colon ||
    text.charCodeAt(16) !== colon ||
    (day > 28 && day > daysInMonth(year, month))
  )
    return undefined;

  let at = 19;
  let micros = 0;
  if (text.charCodeAt(at) === dot) {
    let unit = 1e5;
    const first = ++at;
    for (; isDigit(text.charCodeAt(at)); at++) {
      if (unit >= 1) micros += (text.charCodeAt(at) - zero) * unit;
      unit /= 10;
    }
    if (at === first) return undefined;
  }

  let offsetMinutes = 0;
  const sign = text.charCodeAt(at);
  if (sign === 0x5a || sign === 0x7a) at++;
  else if (sign === plus || sign === hyphen) {
    const hours = digits(text, at + 1, 2);
    const minutes = digits(text, at + 4, 2);
    if (text.charCodeAt(at + 3) !== colon || !(hours >= 0 && hours <= 23 && minutes >= 0 && minutes <= 59))
      return undefined;
    offsetMinutes = (hours * 60 + minutes) * (sign === plus ? 1 : -1);
    at += 6;
  } else return undefined;
  if (at !== text.length) return undefined;

  return epochMicros((utcSeconds(year, month, day, hour, minute, second) - offsetMinutes * 60) * 1e6 + micros);
}

/**
 * RFC 3339 in UTC with as few fractional digits as possible, at most six. Times outside the range of RFC 3339 and
 * `Date`, as from devices or damaged files, get a year with more digits or a sign.
 */
export function formatTimestamp(time: EpochMicros): string {
  const seconds = Math.floor(time / 1e6);
  const micros = time - seconds * 1e6;
  const fraction = micros === 0 ? "" : `.${String(micros).padStart(6, "0").replace(/0+$/, "")}`;
  const eras = Math.floor(seconds / eraSeconds);
  const text = new Date((seconds - eras * eraSeconds) * 1e3).toISOString();
  const year = Number(text.slice(0, 4)) + eras * eraYears;
  return `${String(year).padStart(4, "0")}${text.slice(4, 19)}${fraction}Z`;
}

export const timestamp = z
  .string()
  .refine((text) => parseTimestamp(text) !== undefined, { error: "must be an RFC 3339 timestamp" });

const hyphen = 0x2d;
const plus = 0x2b;
const colon = 0x3a;
const dot = 0x2e;
const zero = 0x30;

function isDigit(code: number): boolean {
  return code >= zero && code <= 0x39;
}

/** Value of `count` digits from `at`. NaN, for which every comparison is false, if a character is no digit. */
function digits(text: string, at: number, count: number): number {
  let value = 0;
  for (let i = at; i < at + count; i++) {
    const code = text.charCodeAt(i);
    if (!isDigit(code)) return Number.NaN;
    value = value * 10 + code - zero;
  }
  return value;
}

/** The calendar repeats every 400 years, which have 146,097 days. */
const eraYears = 400;
const eraSeconds = 146_097 * 86_400;

/** `Date.UTC` maps the years 0 to 99 to 1900 to 1999, so the calculation uses a later era. */
function utcSeconds(year: number, month: number, day: number, hour = 0, minute = 0, second = 0): number {
  return Date.UTC(year + eraYears, month - 1, day, hour, minute, second) / 1e3 - eraSeconds;
}

function daysInMonth(year: number, month: number): number {
  return (utcSeconds(year, month + 1, 1) - utcSeconds(year, month, 1)) / 86_400;
}
