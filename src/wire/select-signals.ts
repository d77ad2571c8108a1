// admin.selectSignals: signals and the items published from them, in the specification's dialect.
import { z } from "zod";
import { integrationId } from "./identifiers.ts";
import { resourceQuery } from "./resource-query.ts";
import { itemSelectView, signalSelectView } from "./signal-view.ts";

export const itemsQuery = z.object({ include: z.boolean().nullish() });

export const selectSignalsParams = z.object({
  integration: integrationId,
  signals: resourceQuery.nullish(),
  items: itemsQuery.nullish(),
});
export type SelectSignalsParams = z.input<typeof selectSignalsParams>;

/** Keyed by ID. A member is there only when it was asked for. */
export const selectSignalsResult = z.object({
  signals: z.record(z.string(), signalSelectView).optional(),
  items: z.record(z.string(), itemSelectView).optional(),
});
export type SelectSignalsResult = z.output<typeof selectSignalsResult>;
