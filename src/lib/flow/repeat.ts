import type { Runtime } from "../../core/runtime.ts";
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
