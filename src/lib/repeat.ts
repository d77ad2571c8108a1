// Work that recurs for as long as its owner lives.
import type { Runtime } from "../core/runtime.ts";
import { isAbort } from "./abort.ts";

interface Recurrence {
  /** Milliseconds from the end of a step to the next one. */
  readonly everyMs: number;
  /** As `Clock.sleep`. */
  readonly gridMs?: number;
  /** When the first step comes: at once, or after `everyMs`. */
  readonly first: "now" | "later";
  /** The line of the log when a step fails, which ends the work. */
  readonly failure: string;
}

/** Runs `step` again and again until it is disposed of, which resolves when the last step is over. */
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
