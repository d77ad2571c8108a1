// RFC 3339 durations (ISO 8601): `PT15M`, `P1DT12H`, `P1Y3M`. `lib/time/duration.ts` has those of the configuration.
import { z } from "zod";

/** Signed months and microseconds. A year is 12 months; weeks, days and clock units have a fixed length. */
export interface RfcDuration {
  readonly months: number;
  readonly micros: number;
}

const pattern =
  /^(-?)P(?:(\d+)Y)?(?:(\d+)M)?(?:(\d+)W)?(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+)(?:[.,](\d+))?S)?)?$/i;

/**
 * Parses a duration. Undefined: invalid, or beyond ±2^53 µs. Accepts zero-padded, lower-case and empty forms, as
 * clients send them: `P0DT0H0M30.000000S`, `pt5m`, `PT`. Only seconds may have a fraction.
 */
export function parseRfcDuration(text: string): RfcDuration | undefined {
  const match = text.length <= 128 ? pattern.exec(text) : null;
  if (!match) return undefined;
  const part = (index: number) => Number(match[index] ?? 0);
  const micros =
    (part(4) * 604_800 + part(5) * 86_400 + part(6) * 3_600 + part(7) * 60 + part(8)) * 1e6 +
    Number((match[9] ?? "").slice(0, 6).padEnd(6, "0"));
  const months = part(2) * 12 + part(3);
  if (!Number.isSafeInteger(micros) || months > 120_000) return undefined;
  // `-0` would print and compare differently from 0.
  return match[1] === "-" ? { months: 0 - months, micros: 0 - micros } : { months, micros };
}

/** Formats as hours, minutes and seconds, as the hosted service does: 40 days are `PT960H`. */
export function formatRfcDuration(micros: number): string {
  if (micros === 0) return "PT0S";
  let left = Math.abs(micros);
  const hours = Math.floor(left / 3_600e6);
  left -= hours * 3_600e6;
  const minutes = Math.floor(left / 60e6);
  left -= minutes * 60e6;
  const seconds = Math.floor(left / 1e6);
  const fraction = left - seconds * 1e6;
  const tail = fraction === 0 ? "" : `.${String(fraction).padStart(6, "0").replace(/0+$/, "")}`;
  const clock = left === 0 ? "" : `${seconds}${tail}S`;
  return `${micros < 0 ? "-" : ""}PT${hours > 0 ? `${hours}H` : ""}${minutes > 0 ? `${minutes}M` : ""}${clock}`;
}

/** A non-negative duration of weeks or smaller units. */
export const fixedDuration = z.string().refine(
  (text) => {
    const duration = parseRfcDuration(text);
    return duration !== undefined && duration.months === 0 && duration.micros >= 0;
  },
  { error: "must be RFC 3339 duration in range week to fraction" },
);
