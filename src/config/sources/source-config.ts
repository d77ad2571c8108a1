// Validates one source: the driver's options, and each expanded tag.
import { z } from "zod";
import type { Claim, Driver, DriverTag } from "../../core/driver.ts";
import type { ConfigFault, TagId } from "../../core/source.ts";
import { fillInput, placeholders } from "../../mapping/input-template.ts";
import { type TagRule, tagOptions } from "../../mapping/options.ts";
import { ambiguityOf, type ConfiguredSource, deviceIdentity, type SourceRun } from "../format/config.ts";
import { cascadedOptions, runOption } from "../format/file-schema.ts";
import { checkNode, unknownKey } from "../nodes/check-node.ts";
import type { Issues, Place } from "../nodes/issue.ts";
import { type ConfigNode, childNode, type MapNode } from "../nodes/node.ts";
import { type ShownValue, shownValues } from "../nodes/shown-values.ts";
import { joinNames, suggestion } from "../nodes/suggest.ts";
import {
  cascadedOfSource,
  type ExpandedTag,
  type ExpandParts,
  expandTags,
  pick,
  sourceKeys,
  tagNames,
} from "./expand.ts";
import { checkInput, checkPercent, checkSignalTexts, checkStates, type UsedInputs } from "./input-check.ts";
import { SharedParts, TagPlaces } from "./tag-places.ts";

interface SourceParts extends Omit<ExpandParts, "driver"> {
  readonly drivers: readonly Driver[];
  readonly inputs: UsedInputs;
  /** The source that uses each connection, by driver and connection name. */
  readonly connections: Map<string, Place & { readonly source: string }>;
  readonly claims: Claims;
  readonly refused: RefusedTags;
  readonly agent: string;
  readonly integration: string;
  /** Whether there is a section `cluster`. */
  readonly isClustered: boolean;
}

/** The source, or undefined if it is invalid. All errors are in `parts.issues`. */
export function checkSource(name: string, node: ConfigNode, parts: SourceParts): ConfiguredSource | undefined {
  const { issues } = parts;
  const driver = driverOf(node, parts);
  if (!driver || node.kind !== "map") return undefined;
  const before = issues.errors;
  const options = checkNode(driver.schema, driverOptions(node, driver, issues), issues);
  const run = checkRun(node, parts);
  const tags: DriverTag<z.ZodObject>[] = [];
  const rules: TagRule[] = [];
  /** Index of each tag in the expanded list. */
  const written: number[] = [];
  const shared = new SharedParts();
  const places = new TagPlaces();
  let expandedTags = 0;
  for (const expanded of expandTags(node, { ...parts, driver })) {
    const index = expandedTags++;
    const checked = checkTag(expanded, driver, parts);
    if (!checked) continue;
    tags.push(shared.of(checked.tag));
    rules.push(shared.of(checked.rule));
    written.push(index);
    places.add(expanded.origin.at, expanded.fields.at);
  }
  if (options !== undefined) {
    const faults = [...(driver.faults?.({ options, tags }) ?? []), ...(parts.refused.get(name) ?? [])];
    tellFaults(faults, written, expandTags(node, { ...parts, driver }), issues);
    warnOverlaps({ driver, tags, rules }, written, expandTags(node, { ...parts, driver }), node, issues);
    for (const { field, message, hint } of driver.warnings?.(options) ?? [])
      issues.warn(childNode(node, field) ?? node, message, hint);
    claimConnection(name, node, driver.connection?.(options), driver, parts);
    const owner = { agent: deviceIdentity(run, parts) ?? parts.agent, source: name };
    enterClaims(driver.claims?.(options, owner) ?? [], { name, run }, node, parts);
  }
  if (tags.length === 0 && issues.errors === before) issues.warn(node, "has no tags: nothing will be read");
  if (options === undefined) return undefined;
  return { name, driver, options, tags, rules, run, places, values: valuesOf(node, driver) };
}

/** Options with their defaults, and what the source sets for its tags. */
function valuesOf(source: MapNode, driver: Driver): readonly ShownValue[] {
  const own = z.looseObject({ type: z.string(), run: runOption.prefault("here"), ...driver.schema.shape });
  const forTags = pick(source, [...cascadedOfSource(driver), "tagsFrom", "devicesFrom"]);
  return [
    ...shownValues([own], pick(source, Object.keys(own.shape)), source.path),
    ...shownValues([cascadedOptions.partial(), driver.tag], forTags, source.path).filter(({ at }) => at),
  ];
}

function checkRun(source: MapNode, { agent, isClustered, issues }: SourceParts): SourceRun {
  const run = checkNode(z.strictObject({ run: runOption }), pick(source, ["run"]), issues)?.run ?? "here";
  if (run === "here") return run;
  if (!isClustered)
    issues.error(
      childNode(source, "run") ?? source,
      "needs the section cluster: without it no other agent can read the source",
      "add the section cluster, or write run: here",
    );
  if (typeof run === "string") return run;
  return run.prefer === agent ? "preferHere" : "anywhere";
}

/** Reports faults at their tags. Expanded tags were not kept, so they are expanded again if there are faults. */
function tellFaults(
  faults: Iterable<ConfigFault>,
  written: readonly number[],
  expandedTags: Iterable<ExpandedTag>,
  issues: Issues,
): void {
  const byTag = Map.groupBy(faults, ({ tag }) => written[tag]);
  for (const [index, { fields, origin }] of tagsAt(new Set(byTag.keys()), expandedTags))
    for (const { field, message, hint } of byTag.get(index) ?? [])
      issues.error(childNode(fields, field) ?? origin, message, hint);
}

/** The expanded tags at these indices, with their index. Without indices, nothing is expanded. */
function tagsAt(indices: ReadonlySet<number | undefined>, expandedTags: Iterable<ExpandedTag>) {
  if (indices.size === 0) return [];
  return Iterator.from(expandedTags)
    .map((tag, index) => [index, tag] as const)
    .filter(([index]) => indices.has(index));
}

const mostOverlaps = 20;

/** Warns of two tags that read the same value into the same Input ID. Expands the tags again if there are any. */
function warnOverlaps(
  { driver, tags, rules }: Pick<ConfiguredSource, "driver" | "tags" | "rules">,
  written: readonly number[],
  expandedTags: Iterable<ExpandedTag>,
  source: MapNode,
  issues: Issues,
): void {
  /** By the later tag: the first tag with the same Input ID. */
  const found = new Map<TagId, { readonly first: TagId; readonly what: string }>();
  for (const { tags: both, captures, what } of driver.overlaps?.(tags) ?? []) {
    const [a, b] = both.map((tag) => rules[tag]);
    const [first, later] = both.toSorted((one, other) => one - other);
    if (!a || !b || (a.shared && b.shared) || first === undefined || later === undefined || found.has(later)) continue;
    if (fillInput(a.input, captures[0]) === fillInput(b.input, captures[1])) found.set(later, { first, what });
  }
  if (found.size === 0) return;
  const shown = [...found].slice(0, mostOverlaps);
  const needed = new Set(shown.flatMap(([later, { first }]) => [written[later], written[first]]));
  const places = new Map<number | undefined, Place>();
  for (const [index, { fields, origin }] of tagsAt(needed, expandedTags))
    places.set(index, childNode(fields, "input") ?? origin);
  for (const [later, { first, what }] of shown) {
    const { at, path } = places.get(written[first]) ?? source;
    issues.warn(
      places.get(written[later]) ?? source,
      `gives the same Input ID as ${path} in line ${at.line} for ${what}; only one of them is stored`,
      "give one of the tags another input, or write shared: true on both",
    );
  }
  const more = found.size - shown.length;
  if (more > 0) issues.warn(source, `has ${more} more tags that give the same Input ID as another one`);
}

/** Reports a connection shared by two sources, since they would not wait for each other's replies. */
function claimConnection(
  source: string,
  node: MapNode,
  connection: string | undefined,
  driver: Driver,
  { connections, issues }: SourceParts,
): void {
  if (connection === undefined) return;
  const key = `${driver.type} ${connection}`;
  const first = connections.get(key);
  const place = childNode(node, "url") ?? node;
  if (!first) connections.set(key, { at: place.at, path: place.path, source });
  else
    issues.error(
      place,
      `leads to the same connection as source ${first.source}, ${connection}`,
      `the requests of both have to wait for each other: put these tags ${driver.device ? "under devices of" : "into"} ${first.source}`,
    );
}

function driverOf(node: ConfigNode, { drivers, issues }: SourceParts): Driver | undefined {
  const types = drivers.map((driver) => driver.type);
  if (node.kind !== "map") {
    if (!(node.kind === "scalar" && node.broken))
      issues.error(node, `must be a map with a type, as in { type: ${types[0]}, ... }`);
    return undefined;
  }
  const type = childNode(node, "type");
  if (!type) {
    issues.error({ at: node.at, path: `${node.path}.type` }, "is missing", `may be ${joinNames(types, "or")}`);
    return undefined;
  }
  const text = type.kind === "scalar" ? type.text : "";
  const driver = drivers.find((candidate) => candidate.type === text);
  if (!driver && !(type.kind === "scalar" && type.broken))
    issues.error(
      type,
      `must be ${joinNames(types, "or")}${text === "" ? "" : `, is ${text}`}`,
      suggestion(text, types),
    );
  return driver;
}

/** The driver's fields of a source. Unknown fields are issues. */
function driverOptions(source: MapNode, driver: Driver, issues: Issues): MapNode {
  const own = Object.keys(driver.schema.shape);
  const cascaded = cascadedOfSource(driver);
  const names = [...sourceKeys, ...own, ...cascaded];
  for (const key of source.entries.keys()) {
    if (names.includes(key)) continue;
    if (Object.hasOwn(driver.tag.shape, key) || key === "input" || key === "shared")
      issues.error(
        { at: source.entries.get(key)?.key ?? source.at, path: `${source.path}.${key}` },
        "stands on a tag, not on a source",
        "write it in an entry of tags",
      );
    else unknownKey(source, key, names, issues);
  }
  return pick(source, own);
}

/** The mapping rule and the driver address of an expanded tag. */
function checkTag(expanded: ExpandedTag, driver: Driver, { inputs, issues }: SourceParts) {
  const { fields } = expanded;
  const ruleKeys = Object.keys(tagOptions.shape);
  const addressKeys = Object.keys(driver.tag.shape);
  for (const key of fields.entries.keys())
    if (!ruleKeys.includes(key) && !addressKeys.includes(key)) unknownKey(fields, key, tagNames(driver), issues);
  const rule = checkNode(tagOptions, pick(fields, ruleKeys), issues);
  const address = checkNode(driver.tag, pick(fields, addressKeys), issues);
  // The captures of an invalid address are unknown; the other checks still run.
  const captured = address && (driver.captures?.(address) ?? []);
  checkInput(expanded, captured, rule ?? { shared: false, sameTime: "replace" }, inputs, issues);
  if (captured) checkSignalTexts(expanded, captured, issues);
  if (rule) checkPercent(rule, fields, driver, issues);
  if (rule) checkStates(expanded, rule.signal, issues);
  if (!rule || !address) return undefined;
  const tag = { ...address, every: rule.every, ...usedNames(rule, captured ?? []) };
  const ambiguity = ambiguityOf(driver, tag, rule);
  const place = childNode(fields, "input") ?? fields;
  if (ambiguity?.always) issues.error(place, ambiguity.message, ambiguity.remedy);
  else if (ambiguity) issues.warn(place, ambiguity.message, ambiguity.remedy);
  for (const { field, message, hint } of driver.remarks?.(address, placeholders(rule.input)) ?? [])
    issues.warn(childNode(fields, field) ?? fields, message, hint);
  return { rule, tag };
}

/** Captured names in use, and those that only `signal` uses. */
function usedNames(
  { input, signal }: TagRule,
  captured: readonly string[],
): Pick<DriverTag<z.ZodObject>, "descriptive" | "fills"> {
  if (captured.length === 0) return {};
  const inInput = placeholders(input);
  const texts = new Set(placeholders(JSON.stringify(signal)));
  const descriptive = captured.filter((name) => texts.has(name) && !inInput.includes(name));
  const fills = captured.filter((name) => texts.has(name) || inInput.includes(name));
  return { fills, ...(descriptive.length > 0 && { descriptive }) };
}

/** Tags that a device refused, by source. */
export type RefusedTags = ReadonlyMap<string, readonly ConfigFault[]>;

/** The source of each claim, by the key of the claim. */
export type Claims = Map<string, Place & ClaimingSource>;

interface ClaimingSource {
  readonly agent: string;
  readonly source: string;
  readonly run: SourceRun;
}

/** Registers the claims of a source. A claim of another source is an error, or a warning if it is uncertain. */
function enterClaims(
  entered: readonly Claim[],
  { name: source, run }: Pick<ConfiguredSource, "name" | "run">,
  node: MapNode,
  { agent, claims, issues }: { readonly agent: string; readonly claims: Claims; readonly issues: Issues },
): void {
  for (const { key, field, message, hint, uncertain = false } of entered) {
    const place = childNode(node, field) ?? childNode(node, "url") ?? node;
    const first = claims.get(key);
    if (!first) claims.set(key, { at: place.at, path: place.path, agent, source, run });
    // One source that several agents of a cluster can read: a lease ensures that only one of them does.
    else if (first.source !== source || first.run === "here" || run === "here" || sameFile(first, place))
      issues[uncertain ? "warn" : "error"](
        { at: place.at, path: `${node.path}.${field}` },
        `${message}, as source ${first.source}${sameFile(first, place) ? "" : ` of agent ${first.agent} in ${first.at.file}`}`,
        hint,
      );
  }
}

function sameFile(a: Place, b: Place): boolean {
  return a.at.file === b.at.file;
}
