// integration.saveSignals: creates or replaces the metadata of signals.
import { z } from "zod";
import { inputId, integrationId } from "./identifiers.ts";
import { saveSummaries } from "./save-summary.ts";
import { signalSaveView } from "./signal-view.ts";

/** The current dialect calls `inputs` `signalsByInput`; the service understands both names in every version. */
export const saveSignalsParams = z.object({
  integration: integrationId,
  inputs: z.record(inputId, signalSaveView),
  /** True: Input IDs that have a signal already are left as they are. */
  createOnly: z.boolean().default(false),
});
export type SaveSignalsParams = z.input<typeof saveSignalsParams>;

export const saveSignalsResult = z.object({ signalsByInput: saveSummaries });
export type SaveSignalsResult = z.output<typeof saveSignalsResult>;
