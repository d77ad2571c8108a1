// Work at intervals, the wait for a condition, and the delay before a retry.
import type { Clock, Runtime } from "../../core/runtime.ts";
import { isAbort } from "./abort.ts";

interface Recurrence {
  /** Milliseconds from the end of a step to the start of the next. */
  readonly everyMs: number;
  /** As `Clock.sleep`. */
  readonly gridMs?: number;
  /** `now`: the first step runs immediately. `later`: it runs after `everyMs`. */
  readonly first: "now" | "later";
  /** Log message of a failed step. A failure ends the repetition. */
  readonly failure: string;
}

/** Runs `step` repeatedly until disposed of. The disposal resolves when the last step has ended. */
export function repeat(
  step: (stopping: AbortSignal) => Promise<unknown> | void,
  { everyMs, gridMs, first, failure }: Recurrence,
  { clock, log }: Pick<Runtime, "clock" | "log">,
): AsyncDisposable {
  const stopping = new AbortController();
  const { signal } = stopping;
  const running = (async () => {
    if (first === "later") await clock.sleep(everyMs, signal, gridMs);
    for (;;) {
      await step(signal);
      await clock.sleep(everyMs, signal, gridMs);
    }
  })().catch((error: unknown) => {
    if (!isAbort(error, signal)) log.error({ err: error }, failure);
  });
  return {
    async [Symbol.asyncDispose]() {
      stopping.abort(new Error("the owner stops"));
      await running;
    },
  };
}

/** True once `holds` is true, false after `withinMs`. Looks at once, then every `everyMs`. Rejects with `signal.reason`. */
export async function waitUntil(
  holds: () => boolean | Promise<boolean>,
  { withinMs, everyMs }: { readonly withinMs: number; readonly everyMs: number },
  clock: Clock,
  signal: AbortSignal,
): Promise<boolean> {
  const end = clock.monotonic() + withinMs;
  while (!(await holds())) {
    if (clock.monotonic() >= end) return false;
    await clock.sleep(everyMs, signal);
  }
  return true;
}

// Delay before a retry: exponential back-off with full jitter and an upper bound.

interface BackOffOptions {
  /** Lower bound of every wait. The first one is at most twice as long. */
  readonly minMs: number;
  /** Upper bound of the longest wait. */
  readonly maxMs: number;
  readonly random: () => number;
}

export class BackOff {
  readonly #options: BackOffOptions;
  #failures = 0;

  constructor(options: BackOffOptions) {
    this.#options = options;
  }

  get failures(): number {
    return this.#failures;
  }

  /** Milliseconds to wait after one more failure: uniform between `minMs` and a bound that doubles up to `maxMs`. */
  next(): number {
    const { minMs, maxMs, random } = this.#options;
    const bound = Math.min(maxMs, minMs * 2 ** Math.min(++this.#failures, 30));
    return minMs + random() * (bound - minMs);
  }

  reset(): void {
    this.#failures = 0;
  }
}
