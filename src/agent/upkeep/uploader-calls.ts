// What the page and the commands request from the running uploader.
import { AgentError } from "../../core/errors.ts";
import type { InputId } from "../../core/point.ts";
import type { Clock } from "../../core/runtime.ts";
import type { RetryProgress } from "../../upload/rejects/reject-retry.ts";
import type { Catalog } from "../../upload/signals/catalog.ts";
import { type ItemSeries, itemSeries, spanBefore } from "../../upload/signals/item-data.ts";
import type { RunningDelivery } from "./delivery.ts";

export type UploaderCalls = ReturnType<typeof uploaderCalls>;

export function uploaderCalls(
  delivery: Pick<RunningDelivery, "uploader">,
  catalog: Pick<Catalog, "entry">,
  clock: Clock,
) {
  const running = (consequence = "") => {
    const { uploader } = delivery;
    if (uploader) return uploader;
    throw new AgentError("SERVICE_UNREACHABLE", `this agent does not deliver at present${consequence}`);
  };
  return {
    /**
     * The stored values of an input over the last `spanMs` milliseconds, from the service. Rejects as `itemSeries` does,
     * and with `SERVICE_UNREACHABLE` if this agent does not deliver at present.
     */
    async series(input: string, spanMs: number, signal: AbortSignal): Promise<ItemSeries> {
      const { caller } = running();
      const id = catalog.entry(input as InputId)?.id; // any other text has no entry
      if (id === undefined) throw new AgentError("SERVICE_UNREACHABLE", `the service has no signal ${input} yet`);
      return await itemSeries(caller, { input: input as InputId, id }, spanBefore(clock.now(), spanMs), signal);
    },
    /**
     * Sends refused points again with the next requests. Resolves once they wait. Rejects with `SERVICE_UNREACHABLE` if
     * this agent does not deliver at present.
     */
    async retryRejects(): Promise<RetryProgress> {
      return await running(", so refused points cannot be sent again").retry.start();
    },
    /** The last retry of refused points. Undefined: none since delivery began. */
    rejectRetry: (): RetryProgress | undefined => delivery.uploader?.retry.progress,
  };
}
