// platform.selectItems: item metadata and time series, in the specification's dialect.
import { z } from "zod";
import { dataFrame } from "./data-frame.ts";
import { resourceQuery } from "./resource-query.ts";
import { itemSelectView } from "./signal-view.ts";
import { timestamp } from "./timestamp.ts";

export const dataQuery = z.object({
  include: z.boolean().nullish(),
  /** Default: 7 days before now. */
  notBefore: timestamp.nullish(),
  /** Default: 14 days after `notBefore`. */
  before: timestamp.nullish(),
  /** An RFC 3339 duration, `window`, or null for the points themselves. */
  rollup: z.string().nullish(),
});
export type DataQuery = z.input<typeof dataQuery>;

export const selectItemsParams = z.object({ items: resourceQuery.nullish(), data: dataQuery.nullish() });
export type SelectItemsParams = z.input<typeof selectItemsParams>;

/**
 * Keys of `data.series` are Item IDs; with a rollup `<item_id>_sum`, `_min`, `_max`, `_avg` and `_count`. A member is
 * there only when it was asked for.
 */
export const selectItemsResult = z.object({
  items: z.record(z.string(), itemSelectView).optional(),
  data: dataFrame.optional(),
});
export type SelectItemsResult = z.output<typeof selectItemsResult>;

export const rollupColumns = ["count", "min", "max", "sum", "avg"] as const;
export type RollupColumn = (typeof rollupColumns)[number];
