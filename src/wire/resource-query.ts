// Which resources a select is about: filter, limit and skip.
import { z } from "zod";

/** Field paths and `$and`, `$or` → conditions. The grammar is in the service's filter parser. */
export const resourceFilter = z.record(z.string(), z.unknown());
export type ResourceFilter = z.output<typeof resourceFilter>;

export const defaultLimit = 10;

/** Null stands for the default wherever a client has nothing to say. */
export const resourceQuery = z.object({
  include: z.boolean().nullable().default(null),
  filter: resourceFilter.nullish(),
  limit: z.int().nullish(),
  skip: z.int().nullish(),
});
export type ResourceQuery = z.input<typeof resourceQuery>;
