// Parses a resource query and applies it.
import { maxSelected } from "../../wire/method.ts";
import { isGiven, type Members, membersOf, readFlag, readInteger } from "../call/params.ts";
import type { Faults } from "../call/rpc-fault.ts";
import type { Signal } from "../store/resource-store.ts";
import { type FieldTable, type FieldValue, parseFilter, signalFields } from "./filter.ts";

interface Query<Resource> {
  readonly include: boolean;
  readonly isLimited: boolean;
  /** The matching resources in the order of the query; by default in that of `resources`, which is by creation. */
  select(resources: Iterable<Resource>): { readonly resources: readonly Resource[]; readonly total: number };
}

interface QueryBounds<Resource> {
  readonly fields: FieldTable<Resource>;
  readonly defaultLimit: number;
  readonly maxLimit: number;
}

/** Reads the query at `path`; null and missing members take their defaults. */
export function readResourceQuery<Resource>(
  query: unknown,
  path: string,
  { fields, defaultLimit, maxLimit }: QueryBounds<Resource>,
  faults: Faults,
): Query<Resource> {
  const members = membersOf(query, path, faults);
  const asked = readInteger(members["limit"], `${path}.limit`, defaultLimit, faults);
  if (asked > maxLimit) faults.add(`${path}.limit`, `must be at most ${maxLimit}`);
  // Clients send -1 for the maximum.
  const limit = asked < 0 ? maxLimit : asked;
  const include = readFlag(members["include"], `${path}.include`, faults);
  const matches = parseFilter(members["filter"], fields, `${path}.filter`, faults);
  const skip = Math.max(0, readInteger(members["skip"], `${path}.skip`, 0, faults));
  const compare = readSort(members["sort"], fields, `${path}.sort`, faults);
  const select = (resources: Iterable<Resource>) => {
    const matching = [...resources].filter(matches).sort(compare);
    // The number of matches, regardless of limit and skip.
    return { resources: matching.slice(skip, skip + limit), total: matching.length };
  };
  return { include, isLimited: (members["limit"] ?? -1) !== -1, select };
}

/** Default limit of a query in the current dialect. */
export const currentDefaultLimit: number = 20;

/** The `query` of methods about signals, in the current dialect. */
export function readSignalQuery(params: Members, faults: Faults, defaultLimit = currentDefaultLimit): Query<Signal> {
  const bounds = { fields: signalFields, defaultLimit, maxLimit: maxSelected.signals };
  return readResourceQuery(params["query"], "query", bounds, faults);
}

const maxSortFields = 10;

/** `["-createdAt", "name"]`: a hyphen reverses the order. */
function readSort<Resource>(
  sort: unknown,
  fields: FieldTable<Resource>,
  path: string,
  faults: Faults,
): (a: Resource, b: Resource) => number {
  if (!isGiven(sort)) return () => 0;
  if (!Array.isArray(sort) || sort.length > maxSortFields) {
    faults.add(path, `must be an array of at most ${maxSortFields} fields`);
    return () => 0;
  }
  const comparisons = sort.map((name: unknown, index) => {
    const descending = typeof name === "string" && name.startsWith("-");
    const field = typeof name === "string" ? fields(descending ? name.slice(1) : name) : undefined;
    if (!field || String(name).includes("labels.")) faults.add(`${path}.${index}`, "cannot be sorted by this field");
    const sign = descending ? -1 : 1;
    return (a: Resource, b: Resource) => (field ? sign * order(field.read(a), field.read(b)) : 0);
  });
  return (a, b) => comparisons.reduce((result, compare) => result || compare(a, b), 0);
}

/** Null sorts first. */
function order(a: FieldValue, b: FieldValue): number {
  if (a === b) return 0;
  if (a === null) return -1;
  if (b === null) return 1;
  return a < b ? -1 : 1;
}
