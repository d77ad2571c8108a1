// Whether a queue at the server may have been too short although no value says so. Pure.
import { overflowed } from "../types/reading.ts";

interface Change {
  readonly handle: number;
  readonly value: { readonly statusCode: { readonly value: number } };
}

/** What is known of an item's queue. */
export interface Queue {
  /** Values that the server keeps; 0: nobody knows. */
  readonly size: number;
  /** Most values that come between two notifications when all goes well. */
  readonly usual: number;
}

/**
 * Those of the changes of one message before which others may have been thrown away unsaid: the first of each item whose
 * queue came full, none of whose values is marked. A queue that is often full is none of these unless the server is known
 * to mark nothing (`unmarked`).
 */
export function unsaidOverflows<C extends Change>(
  changes: readonly C[],
  queueOf: (handle: number) => Queue,
  unmarked = false,
): ReadonlySet<C> {
  const found = new Set<C>();
  // Mostly there is one of each.
  if (new Set(changes.map(({ handle }) => handle)).size === changes.length) return found;
  for (const [handle, values] of Map.groupBy(changes, (change) => change.handle)) {
    const [first] = values;
    if (!first || values.length < 2) continue;
    const { size, usual } = queueOf(handle);
    const full = size > 1 && values.length >= size && (unmarked || size > usual);
    if (full && !values.some(({ value }) => overflowed(value.statusCode.value))) found.add(first);
  }
  return found;
}
