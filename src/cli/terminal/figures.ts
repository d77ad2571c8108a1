// Numbers and lengths of time as commands show them.

/** 1 tag, 2 tags, 12,000 tags. */
export function count(n: number, what: string): string {
  return `${whole(n)} ${what}${n === 1 ? "" : "s"}`;
}

/** With commas between thousands. Without Intl, whose data an agent that starts would have to load: 2 MB. */
function whole(n: number): string {
  return String(Math.round(n)).replace(/\B(?=(\d{3})+$)/g, ",");
}

/** Three digits are enough for an estimate. */
export function number(value: number): string {
  return value >= 100 ? whole(value) : String(Number(value.toPrecision(3)));
}

export function percent(share: number): string {
  return share > 0 && share < 0.001 ? "less than 0.1 %" : `${number(share * 100)} %`;
}

/** A length of time in its two largest units: 90_000 ms → `1m30s`. */
export function span(ms: number): string {
  if (ms < 1_000) return `${Math.max(0, Math.round(ms))}ms`;
  if (ms < 10_000) return `${Math.round(ms / 100) / 10}s`;
  const units = [
    [86_400_000, "d"],
    [3_600_000, "h"],
    [60_000, "m"],
    [1_000, "s"],
  ] as const;
  let text = "";
  let left = ms;
  let shown = 0;
  for (const [size, unit] of units) {
    const n = Math.floor(left / size);
    left -= n * size;
    if (n > 0) text += `${n}${unit}`;
    if ((n > 0 || shown > 0) && ++shown === 2) break;
  }
  return text;
}
