// admin.publishSignals: makes items of signals, or updates them.
import { z } from "zod";
import { integrationId, signalId } from "./identifiers.ts";
import { saveSummaries } from "./save-summary.ts";
import { itemSaveView } from "./signal-view.ts";

export const publishSignalsParams = z.object({
  integration: integrationId,
  itemsBySignal: z.record(signalId, itemSaveView),
  /** True: items that exist already are left as they are. */
  createOnly: z.boolean().default(false),
});
export type PublishSignalsParams = z.input<typeof publishSignalsParams>;

/** Keyed by the Signal ID of the request; each summary names the item. */
export const publishSignalsResult = z.object({ itemsBySignal: saveSummaries });
export type PublishSignalsResult = z.output<typeof publishSignalsResult>;
