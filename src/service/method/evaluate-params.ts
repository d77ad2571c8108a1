// Reads the params of platform.evaluate.
import { resourceIdPattern } from "../../wire/signal-view.ts";
import { isGiven, isRecord, type Members, readInteger } from "../call/params.ts";
import type { Faults } from "../call/rpc-fault.ts";
import { itemFields } from "../query/filter.ts";
import { constants, type Formula, namesIn, parseFormula } from "../query/formula.ts";
import { FormulaError } from "../query/formula-tokens.ts";
import { readResourceQuery, select } from "../query/resource-query.ts";
import type { ItemRecord } from "../store/resource.ts";
import type { ServiceStore } from "../store/store.ts";

/** How the items of a group are brought together, bucket by bucket. */
const groupAggregations = ["count", "min", "max", "sum", "avg"] as const;
type GroupAggregation = (typeof groupAggregations)[number];

const stateAggregations = ["state-seconds", "state-percent", "state-rate"] as const;
export type StateAggregation = (typeof stateAggregations)[number];

/** What is made of the points of an item in each bucket. */
const aggregations = [...groupAggregations, "first", "last", ...stateAggregations] as const;
type Aggregation = (typeof aggregations)[number];

export function isStateAggregation(aggregation: Aggregation): aggregation is StateAggregation {
  return aggregation.startsWith("state-");
}

export interface ItemAggregation {
  readonly item: ItemRecord;
  readonly aggregation: Aggregation;
  /** For the state aggregations. */
  readonly state: number;
  /** How many buckets later the values appear; negative: earlier. */
  readonly shift: number;
  readonly alias: string;
}

export interface Group {
  readonly items: readonly ItemAggregation[];
  readonly aggregation: GroupAggregation;
  readonly alias: string;
}

interface Calculation {
  readonly formula: Formula;
  readonly alias: string;
}

const maxItems = 50;
const maxGroups = 100;
/** Items of a group. */
const maxGroup = 1_000;
const maxCalculations = 100;
const aliasPattern = /^[A-Za-z_][A-Za-z0-9_]{0,27}$/;
/** Names that every formula has. */
const builtInNames = ["bucket_seconds", "time_seconds"];

/** Aliases are gathered in `aliases`: a calculation may name every item, and the calculations before it. */
export function readItemAggregations(
  items: unknown,
  store: ServiceStore,
  aliases: Set<string>,
  faults: Faults,
): readonly ItemAggregation[] {
  const read = readEntries(items, "items", faults).flatMap(([entry, path]): ItemAggregation[] => {
    const { id } = entry;
    const item = typeof id === "string" ? store.resources.item(id) : undefined;
    if (typeof id !== "string" || !resourceIdPattern.test(id))
      faults.add(`${path}.id`, id === undefined ? "required" : "must be an Item ID: 20 characters of a-v and 0-9");
    else if (!item) faults.add(`${path}.id`, "no such item");
    const member = readMember(entry, path, faults);
    const alias = readAlias(entry["alias"], `${path}.alias`, aliases, faults);
    return item && member ? [{ item, ...member, alias }] : [];
  });
  if (new Set(read.map(({ item }) => item.id)).size > maxItems)
    faults.add("items", `must be at most ${maxItems} different items`);
  return read;
}

/** Items that match a query, in the words of 1.2. A group without a limit holds all of them or is refused. */
export function readGroups(
  groups: unknown,
  store: ServiceStore,
  aliases: Set<string>,
  faults: Faults,
): readonly Group[] {
  const entries = readEntries(groups, "groups", faults);
  if (entries.length > maxGroups) faults.add("groups", `must be at most ${maxGroups}`);
  return entries.slice(0, maxGroups).flatMap(([entry, path]): Group[] => {
    const bounds = { fields: itemFields, defaultLimit: maxGroup, maxLimit: maxGroup };
    const query = readResourceQuery(entry["query"] ?? { filter: entry["filter"] }, `${path}.query`, bounds, faults);
    const member = readMember(entry, path, faults);
    const aggregation = groupAggregations.find((known) => known === entry["groupAggregation"]);
    if (!aggregation) faults.add(`${path}.groupAggregation`, `must be one of ${groupAggregations.join(", ")}`);
    const alias = readAlias(entry["alias"], `${path}.alias`, aliases, faults);
    if (!member || !aggregation || faults.any) return [];
    const { resources, total } = select(store.resources.items(), query);
    if (total > maxGroup && !query.isLimited)
      faults.add(
        `${path}.query`,
        `matches ${total} items, a group can have ${maxGroup}: narrow the filter or set a limit`,
      );
    return [{ items: resources.map((item) => ({ item, ...member, alias })), aggregation, alias }];
  });
}

export function readCalculations(
  calculations: unknown,
  items: readonly ItemAggregation[],
  aliases: Set<string>,
  faults: Faults,
): readonly Calculation[] {
  const entries = readEntries(calculations, "calculations", faults);
  if (entries.length > maxCalculations) faults.add("calculations", `must be at most ${maxCalculations}`);
  return entries.slice(0, maxCalculations).flatMap(([entry, path]): Calculation[] => {
    const formula = readFormula(entry["formula"], `${path}.formula`, items, aliases, faults);
    const alias = readAlias(entry["alias"], `${path}.alias`, aliases, faults);
    return formula ? [{ formula, alias }] : [];
  });
}

/** What entries of items and of groups share. */
function readMember(
  entry: Members,
  path: string,
  faults: Faults,
): Pick<ItemAggregation, "aggregation" | "state" | "shift"> | undefined {
  const name = entry["aggregation"] === undefined ? "timeAggregation" : "aggregation";
  const value = entry[name];
  // The long names are older.
  const wanted = typeof value === "string" ? value.replace(/^state-histogram-/, "state-") : undefined;
  const aggregation = aggregations.find((known) => known === wanted);
  if (!aggregation)
    faults.add(`${path}.aggregation`, value === undefined ? "required" : `must be one of ${aggregations.join(", ")}`);
  const lead = readBounded(entry["lead"], `${path}.lead`, -1_000, 1_000, faults);
  const lag = readBounded(entry["lag"], `${path}.lag`, -1_000, 1_000, faults);
  const state = readBounded(entry["state"], `${path}.state`, 0, 9_999, faults);
  if (aggregation && isStateAggregation(aggregation) && !isGiven(entry["state"]))
    faults.add(`${path}.state`, `required for ${aggregation}`);
  return aggregation && { aggregation, state, shift: lag - lead };
}

function readFormula(
  text: unknown,
  path: string,
  items: readonly ItemAggregation[],
  aliases: ReadonlySet<string>,
  faults: Faults,
): Formula | undefined {
  if (typeof text !== "string") {
    faults.add(path, text === undefined ? "required" : "must be a text");
    return undefined;
  }
  try {
    const formula = parseFormula(text);
    const { names, gapfilled } = namesIn(formula);
    for (const name of names)
      if (!aliases.has(name) && !builtInNames.includes(name))
        faults.add(path, `names ${name}, which is no alias before it`);
    for (const name of gapfilled)
      if (!items.some(({ alias }) => alias === name)) faults.add(path, `gapfill takes an item, ${name} is none`);
    return formula;
  } catch (error) {
    if (!(error instanceof FormulaError)) throw error;
    faults.add(path, error.message);
    return undefined;
  }
}

/** Null stands for an empty list. */
function readEntries(list: unknown, path: string, faults: Faults): [Members, string][] {
  if (isGiven(list) && !Array.isArray(list)) faults.add(path, "must be an array");
  const entries: readonly unknown[] = Array.isArray(list) ? list : [];
  return entries.flatMap((entry, index): [Members, string][] => {
    if (isRecord(entry)) {
      if (isGiven(entry["engUnit"]) && entry["engUnit"] !== "")
        faults.add(`${path}.${index}.engUnit`, "is not supported here: what it does to the values is not public");
      return [[entry, `${path}.${index}`]];
    }
    faults.add(`${path}.${index}`, "must be an object");
    return [];
  });
}

function readBounded(value: unknown, path: string, min: number, max: number, faults: Faults): number {
  const read = readInteger(value, path, 0, faults);
  if (read < min || read > max) faults.add(path, `must be from ${min} to ${max}`);
  return read;
}

function readAlias(alias: unknown, path: string, aliases: Set<string>, faults: Faults): string {
  if (typeof alias !== "string" || !aliasPattern.test(alias)) {
    faults.add(path, alias === undefined ? "required" : "must be a letter or _ and at most 27 letters, digits or _");
    return "";
  }
  if (aliases.has(alias)) faults.add(path, "is used twice");
  else if (Object.hasOwn(constants, alias) || builtInNames.includes(alias))
    faults.add(path, "is the name of a constant");
  aliases.add(alias);
  return alias;
}
