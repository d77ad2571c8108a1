// RFC 3339 timestamps, to and from microseconds since the epoch. Written by hand: a full request holds a third of a million.
import { z } from "zod";
import type { EpochMicros } from "../core/point.ts";
import { epochMicros } from "../core/point.ts";

/**
 * The time `text` names, or undefined when it is no RFC 3339 timestamp. An offset or Z is required; digits beyond
 * microseconds are cut. Years run from 0 to 9999, but only times within ±2^53 µs (1684 to 2255) are exact.
 */
export function parseTimestamp(text: string): EpochMicros | undefined {
  // 2026-01-02T03:04:05 is the part of fixed width.
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

  const seconds = daysFromCivil(year, month, day) * 86_400 + hour * 3_600 + (minute - offsetMinutes) * 60 + second;
  return epochMicros(seconds * 1e6 + micros);
}

/** RFC 3339 in UTC with as many fractional digits as are needed, at most six. */
export function formatTimestamp(time: EpochMicros): string {
  const seconds = Math.floor(time / 1e6);
  const micros = time - seconds * 1e6;
  const days = Math.floor(seconds / 86_400);
  const ofDay = seconds - days * 86_400;
  const clock = `${two(Math.floor(ofDay / 3_600))}:${two(Math.floor(ofDay / 60) % 60)}:${two(ofDay % 60)}`;
  return `${civilFromDays(days)}T${clock}${fraction(micros)}Z`;
}

export const timestamp = z
  .string()
  .refine((text) => parseTimestamp(text) !== undefined, { error: "must be an RFC 3339 timestamp" });

/** Whether the service can store this time to the microsecond. */
export function isExact(time: number): boolean {
  return Number.isSafeInteger(time);
}

const hyphen = 0x2d;
const plus = 0x2b;
const colon = 0x3a;
const dot = 0x2e;
const zero = 0x30;

function isDigit(code: number): boolean {
  return code >= zero && code <= 0x39;
}

/** Value of `count` digits from `at`; NaN, which fails every comparison, where one is none. */
function digits(text: string, at: number, count: number): number {
  let value = 0;
  for (let i = at; i < at + count; i++) {
    const code = text.charCodeAt(i);
    if (!isDigit(code)) return Number.NaN;
    value = value * 10 + code - zero;
  }
  return value;
}

function daysInMonth(year: number, month: number): number {
  if (month === 2) return year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0) ? 29 : 28;
  return month === 4 || month === 6 || month === 9 || month === 11 ? 30 : 31;
}

/** Days since 1970-01-01 in the proleptic Gregorian calendar, counted in eras of 400 years that begin in March. */
function daysFromCivil(year: number, month: number, day: number): number {
  const y = month <= 2 ? year - 1 : year;
  const era = Math.floor(y / 400);
  const yearOfEra = y - era * 400;
  const dayOfYear = Math.floor((153 * (month + (month > 2 ? -3 : 9)) + 2) / 5) + day - 1;
  return (
    era * 146_097 + yearOfEra * 365 + Math.floor(yearOfEra / 4) - Math.floor(yearOfEra / 100) + dayOfYear - 719_468
  );
}

function civilFromDays(days: number): string {
  const z = days + 719_468;
  const era = Math.floor(z / 146_097);
  const dayOfEra = z - era * 146_097;
  const yearOfEra = Math.floor(
    (dayOfEra - Math.floor(dayOfEra / 1_460) + Math.floor(dayOfEra / 36_524) - Math.floor(dayOfEra / 146_096)) / 365,
  );
  const dayOfYear = dayOfEra - (365 * yearOfEra + Math.floor(yearOfEra / 4) - Math.floor(yearOfEra / 100));
  const shifted = Math.floor((5 * dayOfYear + 2) / 153);
  const day = dayOfYear - Math.floor((153 * shifted + 2) / 5) + 1;
  const month = shifted < 10 ? shifted + 3 : shifted - 9;
  const year = yearOfEra + era * 400 + (month <= 2 ? 1 : 0);
  return `${String(year).padStart(4, "0")}-${two(month)}-${two(day)}`;
}

function two(value: number): string {
  return value < 10 ? `0${value}` : `${value}`;
}

function fraction(micros: number): string {
  return micros === 0 ? "" : `.${String(micros).padStart(6, "0").replace(/0+$/, "")}`;
}
