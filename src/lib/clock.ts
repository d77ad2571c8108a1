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

/** Calls `wake` at `end` of `performance.now()`, never before. Returns what cancels that. */
function callAt(end: number, wake: () => void): () => void {
  let timer: NodeJS.Timeout;
  function arm(): void {
    const left = end - performance.now();
    // Node cuts fractions off and counts from the begin of the turn, so its timers fire early. They hold 2^31 ms at most.
    if (left > 0) timer = setTimeout(arm, Math.min(Math.ceil(left) + 1, longestTimer));
    else wake();
  }
  timer = setTimeout(arm, Math.min(Math.ceil(end - performance.now()) + 1, longestTimer));
  return () => clearTimeout(timer);
}

/** Those that wait for the same moment, with the one timer that they share. */
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
