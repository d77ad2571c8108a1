// Sends refused points again while no agent runs, for example after a limit of the service was raised.
import { AgentError } from "../core/errors.ts";
import type { Runtime } from "../core/runtime.ts";
import type { RejectFiles } from "./rejects/reject-files.ts";
import { RejectReader, restOf, sendableOf } from "./rejects/reject-reader.ts";
import type { RetryProgress } from "./rejects/reject-retry.ts";
import { openUploader, type UploaderParts } from "./uploader.ts";

/** No uploader may use `stateDir` meanwhile. */
export interface RetryParts extends Pick<UploaderParts, "options" | "catalog" | "stateDir" | "agent"> {
  readonly files: RejectFiles;
  readonly progress: (decided: number) => void;
}

export type Retried = Pick<RetryProgress, "accepted" | "refused" | "unsendable">;

const pollMs = 50;

/**
 * Resolves when the service has decided on each point. Rejects with `SERVICE_UNREACHABLE` or `SERVICE_REFUSED` on the
 * first failure, or with `signal.reason`. Undecided points then stay refused. A kill loses none; the next retry may
 * send some twice, which is harmless.
 */
export async function retryRejects(parts: RetryParts, runtime: Runtime, signal: AbortSignal): Promise<Retried> {
  const { files } = parts;
  await files.recover();
  const { points, unsendable } = await sendableOf(files.lines());
  if (points.length === 0) return { accepted: 0, refused: 0, unsendable };
  await files.takeOut();
  const reader = new RejectReader(points);
  try {
    await send(reader, parts, runtime, signal);
  } finally {
    await files.putBack(await restOf(reader, unsendable, files.newLines()));
  }
  const { points: settled, refused } = reader.settled;
  return { accepted: settled - refused, refused, unsendable };
}

async function send(reader: RejectReader, parts: RetryParts, runtime: Runtime, signal: AbortSignal): Promise<void> {
  const { options, catalog, stateDir, agent, progress } = parts;
  await using uploader = await openUploader(
    { options, reader, catalog, stateDir, agent, parks: false },
    runtime,
    signal,
  );
  const stop = new AbortController();
  const running = uploader.run(stop.signal);
  let over = false;
  const finish = () => {
    over = true;
  };
  reader.all.then(finish, finish);
  running.then(finish, finish);
  try {
    while (!over) {
      progress(reader.settled.points);
      const { lastError, state } = uploader.status();
      if (lastError?.current && state !== "throttled") throw new AgentError(lastError.code, lastError.message);
      await runtime.clock.sleep(pollMs, signal);
    }
  } finally {
    stop.abort(new Error("the retry is over"));
    await running;
  }
}
