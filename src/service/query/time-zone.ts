// Local time of the zones of the tz database, from what the runtime brings along.

/** A zone by its name, undefined when there is none of it. */
export function timeZone(name: string): TimeZone | undefined {
  if (name === "UTC") return utc;
  try {
    return zoneOf(
      new Intl.DateTimeFormat("en-US", {
        timeZone: name,
        hourCycle: "h23",
        year: "numeric",
        month: "numeric",
        day: "numeric",
        hour: "numeric",
        minute: "numeric",
        second: "numeric",
        era: "short",
      }),
    );
  } catch {
    return undefined;
  }
}

/** Times are microseconds since the epoch; local times are those of a clock on the wall, written as if it were UTC. */
export interface TimeZone {
  toLocal(time: number): number;
  /** The earlier one of two; of a time that a clock skips, as long after the jump as it was before. */
  fromLocal(local: number): number;
}

export const utc: TimeZone = { toLocal: (time) => time, fromLocal: (local) => local };

function zoneOf(format: Intl.DateTimeFormat): TimeZone {
  const offsetAt = (time: number): number => {
    const ms = Math.floor(time / 1_000);
    const seconds = Math.floor(ms / 1_000) * 1_000;
    const part = new Map(format.formatToParts(seconds).map(({ type, value }) => [type, value]));
    const field = (type: Intl.DateTimeFormatPartTypes) => Number(part.get(type));
    const year = part.get("era")?.startsWith("B") ? 1 - field("year") : field("year");
    const local = new Date(0);
    local.setUTCFullYear(year, field("month") - 1, field("day"));
    local.setUTCHours(field("hour"), field("minute"), field("second"));
    return (local.getTime() - seconds) * 1_000;
  };
  return {
    toLocal: (time) => time + offsetAt(time),
    fromLocal(local) {
      const day = 86_400e6;
      const before = local - offsetAt(local - day);
      if (before + offsetAt(before) === local) return before;
      const after = local - offsetAt(local + day);
      return after + offsetAt(after) === local ? after : before;
    },
  };
}
