// Numbers, amounts and times as people read them.

const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });

// Made once: to make one takes longer than all else that is formatted in a second.
const formatOf = (options) => new Intl.DateTimeFormat("en-GB", options);
const dates = formatOf({ dateStyle: "medium" });
const times = { medium: formatOf({ timeStyle: "medium" }), short: formatOf({ timeStyle: "short" }) };
const datesAndTimes = {
  medium: formatOf({ dateStyle: "medium", timeStyle: "medium" }),
  short: formatOf({ dateStyle: "medium", timeStyle: "short" }),
};

/** The shortest digits that give the same number again, all of them; thousands are set apart. */
export function value(number) {
  const text = String(number);
  if (text.includes("e")) return text;
  const [digits, fraction] = text.split(".");
  const grouped = digits.replace(/\B(?=(?:\d{3})+$)/g, ",");
  return fraction === undefined ? grouped : `${grouped}.${fraction}`;
}

export function count(number) {
  return whole.format(number);
}

export function rate(perSecond) {
  if (perSecond === 0) return "0";
  return perSecond < 10 ? perSecond.toFixed(1) : count(Math.round(perSecond));
}

export function bytes(number) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  let left = number;
  while (left >= 1024 && unit < units.length - 1) {
    left /= 1024;
    unit++;
  }
  return `${left >= 100 || unit === 0 ? Math.round(left) : left.toFixed(1)} ${units[unit]}`;
}

export function percent(share) {
  return `${share > 0 && share < 0.1 ? (share * 100).toFixed(1) : Math.round(share * 100)} %`;
}

/** A length of time in its two largest units: 90_000 ms → 1 min 30 s. */
export function duration(ms) {
  if (ms < 1_000) return `${Math.max(0, Math.round(ms))} ms`;
  if (ms < 10_000) return `${(ms / 1_000).toFixed(1)} s`;
  const parts = [
    [86_400_000, "d"],
    [3_600_000, "h"],
    [60_000, "min"],
    [1_000, "s"],
  ];
  const at = parts.findIndex(([size]) => ms >= size);
  const [size, unit] = parts[at];
  const first = `${Math.floor(ms / size)} ${unit}`;
  const next = parts[at + 1];
  const rest = next ? Math.floor((ms % size) / next[0]) : 0;
  return rest > 0 ? `${first} ${rest} ${next[1]}` : first;
}

/** How long something goes on: seconds in the first minute only, so that it does not change each second. */
export function since(ms) {
  return duration(ms < 60_000 ? ms : Math.floor(ms / 60_000) * 60_000);
}

/** How long ago, in one unit that does not flicker. */
export function age(ms) {
  if (ms < 1_500) return "now";
  if (ms < 60_000) return `${Math.round(ms / 1_000)} s`;
  if (ms < 3_600_000) return `${Math.floor(ms / 60_000)} min`;
  if (ms < 86_400_000) return `${Math.floor(ms / 3_600_000)} h`;
  return `${Math.floor(ms / 86_400_000)} d`;
}

/** A time of day, with the date where it is another day than `now`. */
export function moment(ms, now) {
  return (sameDay(ms, now) ? times : datesAndTimes).medium.format(ms);
}

/** `21:46:07 to 21:46:50` or `since 21:46:07`, of times in microseconds. */
export function interval({ from, to }, now) {
  const begin = moment(from / 1_000, now);
  return to === undefined ? `since ${begin}` : `${begin} to ${moment(to / 1_000, from / 1_000)}`;
}

/** As `moment`, without seconds. */
export function minute(ms, now) {
  return (sameDay(ms, now) ? times : datesAndTimes).short.format(ms);
}

/** A date; `otherwise` where it is none. */
export function day(ms, otherwise) {
  return Number.isNaN(ms) ? otherwise : dates.format(ms);
}

export function time(ms) {
  return datesAndTimes.medium.format(ms);
}

function sameDay(a, b) {
  return new Date(a).toDateString() === new Date(b).toDateString();
}

/** Hexadecimal digits as servers show them: in pairs. */
export function fingerprint(hex) {
  return hex.toUpperCase().replace(/..(?=.)/g, "$&:");
}
