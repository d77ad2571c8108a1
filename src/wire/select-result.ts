// What selectSignals and selectItems answer, in the specification's dialect. Keyed by ID; a member is there only when it
// was asked for.
import { z } from "zod";
import { dataFrame } from "./data-frame.ts";
import { itemSelectView, signalSelectView } from "./signal-view.ts";

export const selectSignalsResult = z.object({
  signals: z.record(z.string(), signalSelectView).optional(),
  items: z.record(z.string(), itemSelectView).optional(),
});

/** Keys of `data.series` are Item IDs; with a rollup `<item_id>_sum`, `_min`, `_max`, `_avg` and `_count`. */
export const selectItemsResult = z.object({
  items: z.record(z.string(), itemSelectView).optional(),
  data: dataFrame.optional(),
});

export const rollupColumns = ["count", "min", "max", "sum", "avg"] as const;
