// Times as payloads carry them. Pure.
import { type EpochMicros, epochMicros } from "../../core/point.ts";
import { parseDecimal } from "./decoders/decimal.ts";

/** Names of the formats a payload's time may have. */
export const timeFormats = ["auto", "unixS", "unixMs", "unixUs", "unixNs", "iso"] as const;
export type TimeFormat = (typeof timeFormats)[number];

/** Times before 2000 come from devices whose clock was never set. */
const earliest = Date.UTC(2000, 0, 1) * 1_000;
/** Times further ahead than this are wrong; in microseconds. */
const maxFuture = 5 * 60_000_000;

/** The time, or undefined when `value` is none in this format, lies before the year 2000 or more than 5 minutes after `now`. */
export function payloadTime(value: unknown, format: TimeFormat, now: EpochMicros): EpochMicros | undefined {
  const micros = toMicros(value, format);
  // Written so that NaN is refused.
  return micros !== undefined && micros >= earliest && micros <= now + maxFuture ? epochMicros(micros) : undefined;
}

const microsPerUnit = { unixS: 1e6, unixMs: 1e3, unixUs: 1 } as const;

function toMicros(value: unknown, format: TimeFormat): number | undefined {
  if (format === "iso") return typeof value === "string" ? isoMicros(value) : undefined;
  const number = toNumber(value);
  if (number === undefined) return format === "auto" && typeof value === "string" ? isoMicros(value) : undefined;
  const unit = format === "auto" ? byMagnitude(Number(number)) : format;
  if (unit === "unixNs") return Number(typeof number === "bigint" ? number / 1_000n : Math.floor(number / 1_000));
  // 1767225600.62 s is no exact double; the nearest microsecond is what was meant.
  return Math.round(Number(number) * microsPerUnit[unit]);
}

/** In range for any time since 1973, and unambiguous until the year 5138. */
function byMagnitude(value: number): keyof typeof microsPerUnit | "unixNs" {
  if (value < 1e11) return "unixS";
  if (value < 1e14) return "unixMs";
  return value < 1e17 ? "unixUs" : "unixNs";
}

function toNumber(value: unknown): number | bigint | undefined {
  if (typeof value === "number" || typeof value === "bigint") return value;
  return typeof value === "string" && /^\s*\d+(\.\d*)?\s*$/.test(value) ? parseDecimal(value.trim()) : undefined;
}

const iso =
  /^\s*(\d{4})-?(\d\d)-?(\d\d)(?:[T ](\d\d):?(\d\d)(?::?(\d\d)(?:[.,](\d{1,9})\d*)?)?)?\s*(?:(Z|UTC|GMT)|([+-])(\d\d):?(\d\d)?)?\s*$/i;

/** ISO 8601 and RFC 3339; without a zone it is UTC. Finer than a microsecond is cut. */
function isoMicros(text: string): number | undefined {
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
    ,
    sign,
    zoneHours = "0",
    zoneMinutes = "0",
  ] = match;
  const ms = Date.UTC(Number(year), Number(month) - 1, Number(day), Number(hour), Number(minute), Number(second));
  // Date.UTC rolls over what does not exist, as the 31st of June; that is no time. A leap second may.
  if (new Date(Date.UTC(Number(year), Number(month) - 1, Number(day))).getUTCDate() !== Number(day)) return undefined;
  if (Number(month) > 12 || Number(hour) > 24 || Number(minute) > 59 || Number(second) > 60) return undefined;
  const offsetMinutes = (Number(zoneHours) * 60 + Number(zoneMinutes)) * (sign === "-" ? -1 : 1);
  return (ms - offsetMinutes * 60_000) * 1_000 + Number(fraction.slice(0, 6).padEnd(6, "0"));
}
