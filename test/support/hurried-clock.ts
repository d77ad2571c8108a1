// A clock for tests of long waits: timeouts of silence, back-off and delays before reading history are shorter by this
// factor. The time of day is unchanged.
import type { Clock } from "../../src/core/runtime.ts";
import { systemClock } from "../../src/lib/time/clock.ts";

export function hurriedClock(times: number): Clock {
  const clock = systemClock();
  return {
    now: () => clock.now(),
    monotonic: () => times * clock.monotonic(),
    sleep: (ms, signal) => clock.sleep(ms / times, signal),
  };
}
