// RFC 3339 durations (ISO 8601): `PT15M`, `P1DT12H`, `P1Y3M`. Not the durations of the configuration, those are in lib.
import { z } from "zod";

/** Months and microseconds that were written, both with the sign. Years are 12 months; weeks, days and clock units are fixed. */
export interface RfcDuration {
  readonly months: number;
  readonly micros: number;
}

const pattern =
  /^(-?)P(?:(\d+)Y)?(?:(\d+)M)?(?:(\d+)W)?(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+)(?:[.,](\d+))?S)?)?$/i;

/**
 * The duration `text` names, or undefined when it is none or beyond ±2^53 µs. Zero-padded, lower-case and empty forms
 * (`P0DT0H0M30.000000S`, `pt5m`, `PT`) are read, as clients write them. Only seconds may have a fraction.
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
  // `-0` would print and compare as a number of its own.
  return match[1] === "-" ? { months: 0 - months, micros: 0 - micros } : { months, micros };
}

/** Hours, minutes and seconds only, as the hosted service echoes durations: 40 days are `PT960H`. */
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

/** Weeks to fractions of a second, not negative. */
export const fixedDuration = z.string().refine(
  (text) => {
    const duration = parseRfcDuration(text);
    return duration !== undefined && duration.months === 0 && duration.micros >= 0;
  },
  { error: "must be RFC 3339 duration in range week to fraction" },
);
