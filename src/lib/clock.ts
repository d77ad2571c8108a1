// The clock of the machine, as `Runtime` hands it out.

import { epochMicros } from "../core/point.ts";
import type { Clock } from "../core/runtime.ts";

/** Wall time at microsecond resolution, anchored to the system clock again whenever the two are 1 ms or more apart. */
export function systemClock(): Clock {
  let anchorWall = Date.now();
  let anchorMono = performance.now();
  // Node counts from the start of the process, the machine from when it was started.
  const started = Number(process.hrtime.bigint()) / 1e6 - performance.now();
  return {
    now() {
      const mono = performance.now();
      const wall = Date.now();
      let ms = anchorWall + (mono - anchorMono);
      // The anchored time runs between wall and wall + 1 ms; anything else means the system clock was stepped or slewed.
      if (ms < wall || ms >= wall + 2) {
        anchorWall = wall;
        anchorMono = mono;
        ms = wall;
      }
      return epochMicros(ms * 1_000);
    },
    monotonic: () => started + performance.now(),
    sleep,
  };
}

function sleep(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal.aborted) {
      reject(signal.reason);
      return;
    }
    const end = performance.now() + ms;
    let timer = setTimeout(wake, Math.min(ms, longestTimer));
    function wake(): void {
      const left = end - performance.now();
      // Node's timers may fire up to 1 ms early, and hold 2^31 ms at most.
      if (left > 0) timer = setTimeout(wake, Math.min(Math.ceil(left), longestTimer));
      else {
        signal.removeEventListener("abort", abort);
        resolve();
      }
    }
    function abort(): void {
      clearTimeout(timer);
      reject(signal.reason);
    }
    signal.addEventListener("abort", abort, { once: true });
  });
}

const longestTimer = 2 ** 31 - 1;
