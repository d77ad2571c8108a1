// Detects a disk that does not store points: appends fail, or one does not return.
import type { PointBuffer } from "../../core/buffer.ts";
import type { Clock } from "../../core/runtime.ts";

/** A write that takes longer than this counts as hung. Slow disks were seen to take 30 s. In milliseconds. */
const stuckAfterMs = 60_000;

/** Wraps the buffer. `health`: whether points can be stored. */
export function watchAppends(buffer: PointBuffer, clock: Clock) {
  // A set keeps insertion order, so the first entry is the oldest.
  const underWay = new Set<{ readonly since: number }>();
  const watched: PointBuffer = {
    async append(points, options, signal) {
      const call = { since: clock.monotonic() };
      underWay.add(call);
      try {
        await buffer.append(points, options, signal);
      } finally {
        underWay.delete(call);
      }
    },
    reader: () => buffer.reader(),
    stats: () => buffer.stats(),
    [Symbol.asyncDispose]: () => buffer[Symbol.asyncDispose](),
  };
  const health = (): { readonly ok: boolean; readonly reason?: string } => {
    const { degraded } = buffer.stats();
    if (degraded !== undefined) return { ok: false, reason: `points cannot be stored: ${degraded}` };
    const [oldest] = underWay;
    const waitingMs = oldest === undefined ? 0 : clock.monotonic() - oldest.since;
    if (waitingMs < stuckAfterMs) return { ok: true };
    const seconds = Math.round(waitingMs / 1_000);
    return { ok: false, reason: `points cannot be stored: the disk has not answered for ${seconds} s` };
  };
  return { buffer: watched, health };
}
