// Reads a resource query of the specification's dialect and applies it.
import { defaultLimit } from "../wire/resource-query.ts";
import { isRecord } from "./check-frame.ts";
import type { Predicate } from "./filter.ts";
import { parseFilter } from "./filter.ts";
import type { FieldTable } from "./resource-fields.ts";
import type { Faults } from "./rpc-fault.ts";
import { readFlag } from "./save-view.ts";

export interface Query<Resource> {
  readonly include: boolean;
  readonly matches: Predicate<Resource>;
  readonly limit: number;
  readonly skip: number;
}

export interface QueryBounds<Resource> {
  readonly fields: FieldTable<Resource>;
  readonly maxLimit: number;
}

/** Reads the query at `path`; null and absent members have their defaults. */
export function readResourceQuery<Resource>(
  query: unknown,
  path: string,
  { fields, maxLimit }: QueryBounds<Resource>,
  faults: Faults,
): Query<Resource> {
  if (query !== undefined && query !== null && !isRecord(query)) faults.add(path, "must be an object");
  const members = isRecord(query) ? query : {};
  const limit = readInteger(members["limit"], `${path}.limit`, defaultLimit, faults);
  if (limit > maxLimit) faults.add(`${path}.limit`, `must be at most ${maxLimit}`);
  return {
    include: readFlag(members["include"], `${path}.include`, faults),
    matches: parseFilter(members["filter"], fields, `${path}.filter`, faults),
    // Clients say -1 for as many as allowed.
    limit: limit < 0 ? maxLimit : limit,
    skip: Math.max(0, readInteger(members["skip"], `${path}.skip`, 0, faults)),
  };
}

/** The resources of a query, in the order they come in. */
export function select<Resource>(resources: Iterable<Resource>, { matches, limit, skip }: Query<Resource>): Resource[] {
  const selected: Resource[] = [];
  let toSkip = skip;
  if (limit === 0) return selected;
  for (const resource of resources) {
    if (!matches(resource)) continue;
    if (toSkip > 0) toSkip--;
    else if (selected.push(resource) === limit) break;
  }
  return selected;
}

export function readInteger(value: unknown, path: string, otherwise: number, faults: Faults): number {
  if (value === undefined || value === null) return otherwise;
  if (typeof value === "number" && Number.isSafeInteger(value)) return value;
  faults.add(path, "must be an integer");
  return otherwise;
}
