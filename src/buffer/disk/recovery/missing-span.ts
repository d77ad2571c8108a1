// Between which times the points lie that a start misses. Which ones they are nobody knows any more: the interval may be
// wider than what is missing, and is not narrower, as far as the state and the segments beside the holes tell.
import type { BufferState } from "../accounts/buffer-state.ts";
import type { Segment } from "../segments/segment.ts";

export interface MissingSpan {
  readonly from: number | undefined;
  readonly to: number | undefined;
}

/** `segments` by sequence number, as they were found; `durable`: where the log had ended at least. */
export function missingSpan(segments: readonly Segment[], durable: number, state: BufferState): MissingSpan {
  let [from, to] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY];
  const note = (before: Segment | undefined, after: Segment | undefined) => {
    from = Math.min(from, before?.latest ?? state.oldest ?? Number.POSITIVE_INFINITY);
    to = Math.max(to, after?.earliest ?? state.latest ?? Number.NEGATIVE_INFINITY);
  };
  const held = segments.filter(({ points }) => points > 0);
  const [first] = held;
  // What was delivered before the oldest segment is no hole: the oldest that was not is known.
  if (first?.earliest !== undefined && state.oldest !== undefined && state.oldest < first.earliest)
    note(undefined, first);
  for (const [i, segment] of held.entries()) {
    const next = held[i + 1];
    if ((next?.first ?? durable) > segment.endSequence) note(segment, next);
  }
  if (!first) note(undefined, undefined);
  return from <= to ? { from, to } : { from: undefined, to: undefined };
}
