// The clock of the machine, behind `Runtime.clock`.

import { epochMicros } from "../../core/point.ts";
import type { Clock } from "../../core/runtime.ts";

/** Wall time in microseconds from the monotonic clock, anchored again if the two differ by 1 ms or more. */
export function systemClock(): Clock {
  let anchorWall = Date.now();
  let anchorMono = performance.now();
  // `performance.now()` counts from the start of the process, `hrtime` from the boot of the machine.
  const started = Number(process.hrtime.bigint()) / 1e6 - performance.now();
  return {
    now() {
      const mono = performance.now();
      const wall = Date.now();
      let ms = anchorWall + (mono - anchorMono);
      // `Date.now()` truncates to milliseconds. A larger deviation means that the system clock was stepped or slewed.
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

function sleep(ms: number, signal: AbortSignal, gridMs?: number): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal.aborted) {
      reject(signal.reason);
      return;
    }
    const end = performance.now() + ms;
    const cancel = gridMs === undefined ? callAt(end, wake) : callTogether(Math.round(end / gridMs) * gridMs, wake);
    function wake(): void {
      signal.removeEventListener("abort", abort);
      resolve();
    }
    function abort(): void {
      cancel();
      reject(signal.reason);
    }
    signal.addEventListener("abort", abort, { once: true });
  });
}

/** Calls `wake` when `performance.now()` reaches `end`, never earlier. Returns a function that cancels the call. */
function callAt(end: number, wake: () => void): () => void {
  let timer: NodeJS.Timeout;
  function arm(): void {
    const left = end - performance.now();
    // Node's timers may fire early, because fractions are cut. They hold at most 2^31 − 1 ms.
    if (left > 0) timer = setTimeout(arm, Math.min(Math.ceil(left) + 1, longestTimer));
    else wake();
  }
  // A multiple of the grid may be in the past. Node prints a warning for a negative time.
  const left = Math.max(0, end - performance.now());
  timer = setTimeout(arm, Math.min(Math.ceil(left) + 1, longestTimer));
  return () => clearTimeout(timer);
}

/** End time → all waits for that time and their shared timer. */
const together = new Map<number, { readonly wakes: Set<() => void>; readonly cancel: () => void }>();

function callTogether(end: number, wake: () => void): () => void {
  let shared = together.get(end);
  if (!shared) {
    const wakes = new Set<() => void>();
    const cancel = callAt(end, () => {
      together.delete(end);
      for (const each of wakes) each();
    });
    shared = { wakes, cancel };
    together.set(end, shared);
  }
  const { wakes, cancel } = shared;
  wakes.add(wake);
  return () => {
    if (!wakes.delete(wake) || wakes.size > 0) return;
    cancel();
    together.delete(end);
  };
}

const longestTimer = 2 ** 31 - 1;
