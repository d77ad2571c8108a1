// Counts and lists for texts of the status.

/** `1 point`, `2 points`. */
export function counted(n: number, what: string): string {
  return `${n} ${what}${n === 1 ? "" : "s"}`;
}

/** The first `most` names, and how many more there are. */
export function firstOf(count: number, first: readonly string[], most = 5): string {
  const named = first.slice(0, most);
  return `${named.join(", ")}${count > named.length ? ` and ${count - named.length} more` : ""}`;
}
