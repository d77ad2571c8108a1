// The clock of a driver whose source other agents of the cluster can read, too. It stops the source when the driver uses it
// without the lease. A process that was suspended then ends the source before its driver sends the next request: after
// it resumes, its timers may run in any order.
import type { Clock } from "../../core/runtime.ts";

/** Aborts `stop` at the first use after the lease is lost. `sleep` rejects then. */
export function leasedClock(clock: Clock, isHeld: () => boolean, stop: AbortController): Clock {
  const check = () => {
    if (!isHeld()) stop.abort(new Error("another agent of the cluster may read the source now"));
  };
  return {
    now() {
      check();
      return clock.now();
    },
    monotonic() {
      check();
      return clock.monotonic();
    },
    async sleep(ms, signal, gridMs) {
      await clock.sleep(ms, signal, gridMs);
      check();
      stop.signal.throwIfAborted();
    },
  };
}
