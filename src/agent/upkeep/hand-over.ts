// Waits until points that were read are in the stream of the cluster.
import type { BufferStats } from "../../core/buffer.ts";
import type { Clock } from "../../core/runtime.ts";

/** Longest wait of a source that stops for its last points to reach the stream. */
const longestMs = 2_000;
const lookMs = 20;

/**
 * Resolves once as many points of `buffer` are settled as waited at the call, after 2 s at the latest, and at once if
 * forwarding is paused. Never rejects.
 */
export async function handOver(
  buffer: { stats(): Pick<BufferStats, "settledPoints" | "unsettledPoints"> },
  isPaused: () => boolean,
  clock: Clock,
  signal: AbortSignal,
): Promise<void> {
  const { settledPoints, unsettledPoints } = buffer.stats();
  const until = clock.monotonic() + longestMs;
  const isWaiting = () => buffer.stats().settledPoints < settledPoints + unsettledPoints;
  while (isWaiting() && !isPaused() && !signal.aborted && clock.monotonic() < until)
    await clock.sleep(lookMs, signal).catch(() => {});
}
