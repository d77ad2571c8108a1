// Detects a hung disk: an append to the buffer that does not return.
import type { PointBuffer } from "../../core/buffer.ts";
import type { Clock } from "../../core/runtime.ts";

/** Wraps the buffer. `waitingMs`: how long the oldest pending append has taken; 0: none is pending. */
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
  const waitingMs = () => {
    const [oldest] = underWay;
    return oldest === undefined ? 0 : clock.monotonic() - oldest.since;
  };
  return { buffer: watched, waitingMs };
}
