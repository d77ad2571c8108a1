// The clock of the machine, behind `Runtime.clock`, and times of starts that hold when it is set.
import { type EpochMicros, epochMicros } from "../../core/point.ts";
import type { Clock, Logger, Metrics, Runtime } from "../../core/runtime.ts";

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

// Start time of a state, corrected when the wall clock is set: a clock step must not turn minutes into decades.

/** Deviation of the wall clock from the monotonic clock that is tolerated without a correction, in microseconds. */
const toleratedUs = 1e6;

export class Since {
  readonly #clock: Clock;
  #wall: EpochMicros;
  #monotonicMs: number;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#wall = clock.now();
    this.#monotonicMs = clock.monotonic();
  }

  restart(): void {
    this.#wall = this.#clock.now();
    this.#monotonicMs = this.#clock.monotonic();
  }

  /** Wall time of the start. Constant until the clock is set. */
  get time(): EpochMicros {
    const began = epochMicros(this.#clock.now() - (this.#clock.monotonic() - this.#monotonicMs) * 1_000);
    if (Math.abs(began - this.#wall) > toleratedUs) this.#wall = began;
    return this.#wall;
  }
}

export function systemRuntime(log: Logger, metrics: Metrics, clock: Clock = systemClock()): Runtime {
  return { clock, random: Math.random, log, metrics };
}
