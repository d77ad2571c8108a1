// Reads the params of platform.evaluate.
import { resourceIdPattern } from "../../wire/signal-view.ts";
import { isGiven, isRecord, type Members, type MethodCall, readInteger } from "../call/params.ts";
import { itemFields } from "../query/filter.ts";
import { constants, type Formula, FormulaError, namesIn, parseFormula } from "../query/formula.ts";
import { readResourceQuery } from "../query/resource-query.ts";
import type { ItemRecord } from "../store/resource-store.ts";

/** Aggregations over the items of a group in each bucket. */
const groupAggregations = ["count", "min", "max", "sum", "avg"] as const;
type GroupAggregation = (typeof groupAggregations)[number];

const stateAggregations = ["state-seconds", "state-percent", "state-rate"] as const;
export type StateAggregation = (typeof stateAggregations)[number];

/** Aggregations over the points of an item in each bucket. */
const aggregations = [...groupAggregations, "first", "last", ...stateAggregations] as const;
type Aggregation = (typeof aggregations)[number];

export function isStateAggregation(aggregation: Aggregation): aggregation is StateAggregation {
  return aggregation.startsWith("state-");
}

export interface ItemAggregation {
  readonly item: ItemRecord;
  readonly aggregation: Aggregation;
  /** For state aggregations only. */
  readonly state: number;
  /** Number of buckets by which values are delayed; negative: advanced. */
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

interface Evaluation {
  readonly items: readonly ItemAggregation[];
  readonly groups: readonly Group[];
  readonly calculations: readonly Calculation[];
  /** All aliases in the order of the request. */
  readonly aliases: ReadonlySet<string>;
}

const maxItems = 50;
const maxGroups = 100;
const maxGroup = 1_000;
const maxCalculations = 100;
const aliasPattern = /^[A-Za-z_][A-Za-z0-9_]{0,27}$/;
/** Names available in every formula. */
const builtInNames = ["bucket_seconds", "time_seconds"];

/** A calculation may use all items, all groups and preceding calculations. */
export function readEvaluation({ params, store, faults }: MethodCall): Evaluation {
  const aliases = new Set<string>();

  const items = readEntries("items").flatMap(([entry, path]): ItemAggregation[] => {
    const { id } = entry;
    const item = typeof id === "string" ? store.resources.item(id) : undefined;
    if (typeof id !== "string" || !resourceIdPattern.test(id))
      faults.add(`${path}.id`, id === undefined ? "required" : "must be an Item ID: 20 characters of a-v and 0-9");
    else if (!item) faults.add(`${path}.id`, "no such item");
    const member = readMember(entry, path);
    const alias = readAlias(entry["alias"], `${path}.alias`);
    return item && member ? [{ item, ...member, alias }] : [];
  });
  if (new Set(items.map(({ item }) => item.id)).size > maxItems)
    faults.add("items", `must be at most ${maxItems} different items`);

  // Groups select items by a query of 1.2. Without a limit, a group holds all matches or is refused.
  const groups = readEntries("groups", maxGroups).flatMap(([entry, path]): Group[] => {
    const bounds = { fields: itemFields, defaultLimit: maxGroup, maxLimit: maxGroup };
    const query = readResourceQuery(entry["query"] ?? { filter: entry["filter"] }, `${path}.query`, bounds, faults);
    const member = readMember(entry, path);
    const aggregation = groupAggregations.find((known) => known === entry["groupAggregation"]);
    if (!aggregation) faults.add(`${path}.groupAggregation`, `must be one of ${groupAggregations.join(", ")}`);
    const alias = readAlias(entry["alias"], `${path}.alias`);
    if (!member || !aggregation || faults.any) return [];
    const { resources, total } = query.select(store.resources.items());
    if (total > maxGroup && !query.isLimited)
      faults.add(
        `${path}.query`,
        `matches ${total} items, a group can have ${maxGroup}: narrow the filter or set a limit`,
      );
    return [{ items: resources.map((item) => ({ item, ...member, alias })), aggregation, alias }];
  });

  const calculations = readEntries("calculations", maxCalculations).flatMap(([entry, path]): Calculation[] => {
    const formula = readFormula(entry["formula"], `${path}.formula`);
    const alias = readAlias(entry["alias"], `${path}.alias`);
    return formula ? [{ formula, alias }] : [];
  });
  return { items, groups, calculations, aliases };

  /** A null list counts as empty. */
  function readEntries(name: string, most = Number.POSITIVE_INFINITY): [Members, string][] {
    const list = params[name];
    if (isGiven(list) && !Array.isArray(list)) faults.add(name, "must be an array");
    const entries: readonly unknown[] = Array.isArray(list) ? list : [];
    const read = entries.flatMap((entry, index): [Members, string][] => {
      const path = `${name}.${index}`;
      if (!isRecord(entry)) faults.add(path, "must be an object");
      else if (isGiven(entry["engUnit"]) && entry["engUnit"] !== "")
        faults.add(`${path}.engUnit`, "is not supported here: what it does to the values is not public");
      return isRecord(entry) ? [[entry, path]] : [];
    });
    if (read.length > most) faults.add(name, `must be at most ${most}`);
    return read.slice(0, most);
  }

  /** The members that items and groups share. */
  function readMember(
    entry: Members,
    path: string,
  ): Pick<ItemAggregation, "aggregation" | "state" | "shift"> | undefined {
    const value = entry[entry["aggregation"] === undefined ? "timeAggregation" : "aggregation"];
    // The long names are older.
    const wanted = typeof value === "string" ? value.replace(/^state-histogram-/, "state-") : undefined;
    const aggregation = aggregations.find((known) => known === wanted);
    if (!aggregation)
      faults.add(`${path}.aggregation`, value === undefined ? "required" : `must be one of ${aggregations.join(", ")}`);
    const bounded = (name: string, min: number, max: number) => {
      const read = readInteger(entry[name], `${path}.${name}`, 0, faults);
      if (read < min || read > max) faults.add(`${path}.${name}`, `must be from ${min} to ${max}`);
      return read;
    };
    const [lead, lag, state] = [
      bounded("lead", -1_000, 1_000),
      bounded("lag", -1_000, 1_000),
      bounded("state", 0, 9_999),
    ];
    if (aggregation && isStateAggregation(aggregation) && !isGiven(entry["state"]))
      faults.add(`${path}.state`, `required for ${aggregation}`);
    return aggregation && { aggregation, state, shift: lag - lead };
  }

  function readFormula(text: unknown, path: string): Formula | undefined {
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

  function readAlias(alias: unknown, path: string): string {
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
}
