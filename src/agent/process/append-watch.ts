// Notices a disk that neither stores nor fails: an append to the buffer that does not return.
import type { PointBuffer } from "../../core/buffer.ts";
import type { Clock } from "../../core/runtime.ts";

/** The same buffer, seen. `waitingMs`: how long the append that has taken longest has not returned; 0: none is under way. */
export function watchAppends(buffer: PointBuffer, clock: Clock) {
  // A set keeps the order of the calls: the first is the oldest.
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
