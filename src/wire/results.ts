// Results of methods: summaries of saved resources, selected resources by ID, and data frames.
import { z } from "zod";
import { itemSelectView, signalSelectView } from "./signal-view.ts";
import { timestamp } from "./timestamp.ts";

/** `saveSignals` and `publishSignals` return `updated` since 1.1; `insert` never does. */
const saveSummary = z.object({ id: z.string(), created: z.boolean(), updated: z.boolean().optional() });
export type SaveSummary = z.output<typeof saveSummary>;

/** Keyed by the ID in the request: an Input ID, or the Signal ID of a publication. */
export const saveSummaries = z.record(z.string(), saveSummary);

export const publishSignalsResult = z.object({ itemsBySignal: saveSummaries });

export const sameLength = "not same length as times";

/** Times, and for each key as many values. Null means no value at this time; it never deletes a stored one. */
export const dataFrame = z
  .object({ times: z.array(timestamp), series: z.record(z.string(), z.array(z.number().nullable())) })
  .superRefine(({ times, series }, context) => {
    for (const [key, values] of Object.entries(series))
      if (values.length !== times.length)
        context.addIssue({ code: "custom", path: ["series", key], message: sameLength, input: values });
  });
export type DataFrame = z.output<typeof dataFrame>;

/** Keyed by ID. A member is present only if it was requested. This and the next follow the specification's dialect. */
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
