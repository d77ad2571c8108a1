// `5s`, `250ms`, `1h30m`: lengths of time as people write them.

const unitMs: Readonly<Record<string, number>> = {
  ms: 1,
  s: 1_000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
  w: 604_800_000,
};
const part = /(\d+(?:\.\d+)?)(ms|s|m|h|d|w)/y;

/** Milliseconds, or undefined if `text` is invalid. `0` needs no unit. */
export function parseDuration(text: string): number | undefined {
  const trimmed = text.trim();
  if (trimmed === "0") return 0;
  let total = 0;
  part.lastIndex = 0;
  while (part.lastIndex < trimmed.length) {
    const match = part.exec(trimmed);
    if (!match) return undefined;
    total += Number(match[1]) * (unitMs[match[2] ?? ""] ?? Number.NaN);
  }
  return trimmed === "" ? undefined : total;
}

/** The shortest form that `parseDuration` reads back: 90_000 → `1m30s`. */
export function formatDuration(ms: number): string {
  if (ms === 0) return "0";
  let left = ms;
  let text = "";
  for (const unit of ["d", "h", "m", "s"]) {
    const size = unitMs[unit] ?? 1;
    const count = Math.floor(left / size);
    if (count > 0) text += `${count}${unit}`;
    left -= count * size;
  }
  return left > 0 ? `${text}${left}ms` : text;
}
