// Wall-clock time of a zone to time since 1970, for devices that send local time without saying so. Pure.

/** A zone with the changes its clocks make in the course of the year. */
export interface TimeZone {
  /**
   * Milliseconds since 1970 of a wall-clock time, given as if it were UTC. Of a time that comes twice, when clocks are
   * set back, it is the first; one that is skipped is moved on as clocks were.
   */
  toEpochMs(wallMs: number): number;
}

/** The zone of this name of the IANA data base or this offset such as `+02:00`; undefined: there is none. */
export function timeZone(name: string): TimeZone | undefined {
  const offset = /^([+-])(\d\d):(\d\d)$/.exec(name);
  if (offset) {
    const ms = (Number(offset[2]) * 60 + Number(offset[3])) * 60_000 * (offset[1] === "-" ? -1 : 1);
    return { toEpochMs: (wallMs) => wallMs - ms };
  }
  let format: Intl.DateTimeFormat;
  try {
    format = new Intl.DateTimeFormat("en-US", { timeZone: name, timeZoneName: "longOffset" });
  } catch {
    return undefined;
  }
  const before = rememberedOffset(format);
  const at = rememberedOffset(format);
  const after = rememberedOffset(format);
  return {
    toEpochMs(wallMs) {
      // The offset from before clocks are set back gives the earlier of two possible times.
      const early = before(wallMs - dayMs);
      const candidate = wallMs - early;
      return at(candidate) === early ? candidate : wallMs - at(wallMs - after(wallMs + dayMs));
    },
  };
}

const dayMs = 86_400_000;

/** Offsets change on the quarter of an hour at most, and asking for one is slow. */
function rememberedOffset(format: Intl.DateTimeFormat): (epochMs: number) => number {
  let known = Number.NaN;
  let offset = 0;
  return (epochMs) => {
    const quarter = Math.floor(epochMs / 900_000);
    if (quarter !== known) {
      offset = offsetOf(format, quarter * 900_000);
      known = quarter;
    }
    return offset;
  };
}

function offsetOf(format: Intl.DateTimeFormat, epochMs: number): number {
  const name = format.formatToParts(epochMs).find(({ type }) => type === "timeZoneName")?.value ?? "GMT";
  const match = /^GMT(?:([+-])(\d\d):(\d\d)(?::(\d\d))?)?$/.exec(name);
  const seconds = Number(match?.[2] ?? 0) * 3_600 + Number(match?.[3] ?? 0) * 60 + Number(match?.[4] ?? 0);
  return seconds * 1_000 * (match?.[1] === "-" ? -1 : 1);
}
