/** The name nearest to `given`; undefined if none is near enough. */
export function nearest(given: string, names: Iterable<string>): string | undefined {
  const wanted = given.toLowerCase();
  let best: string | undefined;
  let least = Math.max(1, Math.floor(given.length / 3)) + 1;
  for (const name of names) {
    const edits = distance(wanted, name.toLowerCase(), least);
    if (edits < least) {
      least = edits;
      best = name;
    }
  }
  return best;
}

/** `did you mean x?`, or a list of the valid names. */
export function suggestion(given: string, names: readonly string[]): string | undefined {
  const near = nearest(given, names);
  if (near !== undefined) return `did you mean ${near}?`;
  return names.length === 0 ? undefined : `may be ${joinNames(names, "or")}`;
}

/** `a`, `a or b`, `a, b or c`. */
export function joinNames(names: readonly string[], word: "or" | "and"): string {
  const last = names.at(-1) ?? "";
  return names.length < 2 ? last : `${names.slice(0, -1).join(", ")} ${word} ${last}`;
}

/** Edit distance from `a` to `b` (insert, delete, replace, swap neighbours), capped at `limit`. */
function distance(a: string, b: string, limit: number): number {
  if (a.length > 100 || Math.abs(a.length - b.length) >= limit) return limit;
  let before: number[] = [];
  let row = Array.from({ length: b.length + 1 }, (_, i) => i);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const same = a[i - 1] === b[j - 1] ? 0 : 1;
      let cost = Math.min((row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1, (row[j - 1] ?? 0) + same);
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1])
        cost = Math.min(cost, (before[j - 2] ?? 0) + 1);
      next.push(cost);
    }
    before = row;
    row = next;
  }
  return row[b.length] ?? limit;
}
