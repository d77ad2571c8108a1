// Sends refused points again while no agent runs, for example after a limit of the service was raised.
import { AgentError } from "../core/errors.ts";
import type { Runtime } from "../core/runtime.ts";
import { RejectReader } from "./rejects/reject-reader.ts";
import type { RetryProgress } from "./rejects/reject-retry.ts";
import { openUploader, type UploaderParts } from "./uploader.ts";

/** No uploader may use `stateDir` meanwhile. */
export interface RetryParts extends Pick<UploaderParts, "options" | "catalog" | "stateDir" | "agent"> {
  readonly progress: (decided: number) => void;
}

export type Retried = Pick<RetryProgress, "accepted" | "refused" | "unsendable">;

const pollMs = 50;

/**
 * Resolves when the service has decided on each point. Rejects with `SERVICE_UNREACHABLE` or `SERVICE_REFUSED` on the
 * first failure, or with `signal.reason`. Undecided points then stay refused. A kill loses none; the next retry may
 * send some twice, which is harmless.
 */
export async function retryRejects(
  { options, catalog, stateDir, agent, progress }: RetryParts,
  runtime: Runtime,
  signal: AbortSignal,
): Promise<Retried> {
  // Without an agent, there are no points but the refused ones.
  const reader = new RejectReader([]);
  const parts = { options, reader, catalog, stateDir, agent, parks: false };
  await using uploader = await openUploader(parts, runtime, signal);
  const { retry } = uploader;
  let retried: RetryProgress = await retry.start();
  const stop = new AbortController();
  let hasFailed = false;
  const running = uploader.run(stop.signal);
  running.catch(() => {
    hasFailed = true;
  });
  try {
    while (retried.running && !hasFailed) {
      progress(retried.accepted + retried.refused);
      const { lastError, state } = uploader.status();
      if (lastError?.current && state !== "throttled") throw new AgentError(lastError.code, lastError.message);
      await runtime.clock.sleep(pollMs, signal);
      retried = retry.progress ?? retried;
    }
  } finally {
    stop.abort(new Error("the retry is over"));
    await running;
  }
  return retried;
}
