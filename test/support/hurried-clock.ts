// A clock for tests that cannot wait for what takes seconds: silences are noticed, back-off passes and history is asked so
// many times as soon as in earnest. The time of the day stays right.
import type { Clock } from "../../src/core/runtime.ts";
import { systemClock } from "../../src/lib/clock.ts";

export function hurriedClock(times: number): Clock {
  const clock = systemClock();
  return {
    now: () => clock.now(),
    monotonic: () => times * clock.monotonic(),
    sleep: (ms, signal) => clock.sleep(ms / times, signal),
  };
}
