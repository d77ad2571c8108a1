// Where the line of a plot ends, since nothing was recorded. Pure.
//
//   points         a        b           c        d
//   gap record          |--------|
//   drawn          a────┘             ▪ b   c────d      the value of `a` is known until the gap begins, then nothing is

/** Whether the gap is one of this tag, and its values are missing. A gap that may include the tag does not count. */
export function isMissing(gap, { source, input }) {
  const { state, source: from, inputs, unfilled, asked } = gap;
  if (state === "filled" || from !== source) return false;
  if (inputs.length > 0 && !inputs.includes(input)) return false;
  // Values of some tags were recovered, or are being recovered.
  const named = (state === "partly" ? unfilled : state === "filling" ? asked : undefined)?.inputs ?? [];
  return named.length === 0 || named.includes(input);
}

/** Begin and end of each interruption in milliseconds, ascending. `now`: end of an open one. */
export function interruptionsOf(gaps, now) {
  return gaps
    .flatMap(({ from, to, intervals }) => intervals ?? [[from, to ?? now * 1_000]])
    .map(([from, to]) => [from / 1_000, to / 1_000])
    .toSorted(([a], [b]) => a - b);
}

/** Least share of an interruption between two points: times of agent and device may differ a little. */
const least = 0.5;

/**
 * The columns of `[times, …values]` with a row of nulls wherever the line has to end: between points that are further
 * apart than `gapMs` and the width of their buckets, and in each interruption. Where an interruption begins, the last
 * value is repeated, since a value may rarely change.
 */
export function withGaps([times, ...columns], { gapMs = Infinity, bucketMs = 0 }, interruptions) {
  const drawn = [[], ...columns.map(() => [])];
  const put = (time, valueOf) => {
    drawn[0].push(time);
    for (const [i, column] of columns.entries()) drawn[i + 1].push(valueOf(column));
  };
  let next = 0;
  for (const [i, time] of times.entries()) {
    put(time, (column) => column[i] ?? null);
    const after = times[i + 1] ?? Infinity;
    const known = time + bucketMs;
    while (next < interruptions.length && interruptions[next][1] <= known) next++;
    const [from, to] = interruptions[next] ?? [Infinity, Infinity];
    const end = Math.max(from, known);
    // There must be room for two rows.
    if (after - end > 2 && Math.min(to, after) - end >= (to - from) * least) {
      if (end > time) put(end, (column) => column[i] ?? null);
      put(end + 1, () => null);
    } else if (after !== Infinity && after - known > gapMs) put(known + 1, () => null);
  }
  return drawn;
}
