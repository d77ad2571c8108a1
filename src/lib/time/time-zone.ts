// Local time in zones of the tz database. Times are microseconds since 1970. A local time is the time of a wall clock,
// represented as if it were UTC.

export interface TimeZone {
  toLocal(time: number): number;
  /**
   * If the local time occurs twice: the later time unless it is after `latest`, by default the earlier one. A skipped
   * time is shifted by the length of the gap.
   */
  fromLocal(local: number, latest?: number): number;
}

export const utc: TimeZone = { toLocal: (time) => time, fromLocal: (local) => local };

/** The zone with this name or with an offset such as `+02:00`. Undefined: unknown. */
export function timeZone(name: string): TimeZone | undefined {
  if (name === "UTC") return utc;
  let format: Intl.DateTimeFormat;
  try {
    format = new Intl.DateTimeFormat("en-US", { timeZone: name, timeZoneName: "longOffset" });
  } catch {
    return undefined;
  }
  const offsetAt = rememberedOffset(format);
  return {
    toLocal: (time) => time + offsetAt(time),
    fromLocal(local, latest = Number.NEGATIVE_INFINITY) {
      const before = local - offsetAt(local - day);
      const after = local - offsetAt(local + day);
      if (before === after) return before;
      const occurs = before + offsetAt(before) === local;
      return after + offsetAt(after) === local && (!occurs || after <= latest) ? after : before;
    },
  };
}

const day = 86_400e6;
const quarterHour = 900e6;
/** Range of `Date`, less a few days. */
const furthest = 8.639e18;
const mostRemembered = 1_000;

/** Caches offsets per quarter of an hour, on which clocks change; a formatter takes microseconds. NaN: out of range. */
function rememberedOffset(format: Intl.DateTimeFormat): (time: number) => number {
  const known = new Map<number, number>();
  return (time) => {
    if (!(Math.abs(time) < furthest)) return Number.NaN;
    const quarter = Math.floor(time / quarterHour);
    let offset = known.get(quarter);
    if (offset === undefined) {
      if (known.size === mostRemembered) known.clear();
      offset = offsetOf(format.format(quarter * 900_000));
      known.set(quarter, offset);
    }
    return offset;
  };
}

/** Offset in microseconds from a text that ends in `GMT`, `GMT+02:00` or, for historical times, `GMT-00:14:44`. */
function offsetOf(text: string): number {
  const [, sign, hours = 0, minutes = 0, seconds = 0] = /GMT(?:([+-])(\d\d):(\d\d)(?::(\d\d))?)?$/.exec(text) ?? [];
  return ((Number(hours) * 60 + Number(minutes)) * 60 + Number(seconds)) * (sign === "-" ? -1e6 : 1e6);
}
