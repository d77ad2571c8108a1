// When the backlog will be gone, as far as the last minute tells. Pure.

/** Fewer points than this many seconds of what arrives are no backlog: they wait for their turn. */
const usualSeconds = 20;

/**
 * Milliseconds; undefined where there is no backlog, or where it does not shrink. What arrives is taken at the rate of
 * readings, of which report by exception may let fewer through: it is rather sooner.
 */
export function drainTime(
  backlogPoints: number,
  deliveredPerSecond: number,
  readingsPerSecond: number,
): number | undefined {
  const shrinking = deliveredPerSecond - readingsPerSecond;
  if (backlogPoints <= usualSeconds * readingsPerSecond || shrinking <= 0) return undefined;
  return Math.round((backlogPoints / shrinking) * 1_000);
}
