// Checks one source: its driver's options, and each of its tags after everything has come together.
import type { z } from "zod";
import { isInputId } from "../core/point.ts";
import type { Driver, DriverTag } from "../core/source.ts";
import { literals, placeholders } from "../mapping/input-template.ts";
import { type TagRule, tagOptions } from "../mapping/options.ts";
import { checkNode, unknownKey } from "./check-node.ts";
import type { ConfiguredSource } from "./config.ts";
import { cascadedOfSource, type ExpandedTag, type ExpandParts, expandTags, sourceKeys, tagNames } from "./expand.ts";
import type { Issues, Place } from "./issue.ts";
import { type ConfigNode, child, type MapNode } from "./node.ts";
import { listed, suggestion } from "./suggest.ts";

/** Which tag uses which Input ID, over all sources. */
export type UsedInputs = Map<string, Place>;

export interface SourceParts extends Omit<ExpandParts, "driver"> {
  readonly drivers: readonly Driver[];
  readonly inputs: UsedInputs;
}

/** The source, or undefined when it is wrong; then `parts.issues` says all that is. */
export function checkSource(name: string, node: ConfigNode, parts: SourceParts): ConfiguredSource | undefined {
  const { issues } = parts;
  const driver = driverOf(node, parts);
  if (!driver || node.kind !== "map") return undefined;
  const before = issues.errors;
  const options = checkNode(driver.schema, driverOptions(node, driver, issues), issues);
  const tags: DriverTag<z.ZodObject>[] = [];
  const rules: TagRule[] = [];
  for (const expanded of expandTags(node, { ...parts, driver })) {
    const checked = checkTag(expanded, driver, issues);
    if (!checked) continue;
    tags.push(checked.tag);
    rules.push(checked.rule);
    claimInput(checked.rule.input, expanded, parts);
  }
  if (tags.length === 0 && issues.errors === before) issues.warn(node, "has no tags: nothing will be read");
  return options === undefined ? undefined : { name, driver, options, tags, rules };
}

function driverOf(node: ConfigNode, { drivers, issues }: SourceParts): Driver | undefined {
  if (node.kind !== "map") {
    if (!(node.kind === "scalar" && node.broken))
      issues.error(node, "must be a map with a type, as in { type: mqtt, ... }");
    return undefined;
  }
  const type = child(node, "type");
  const types = drivers.map((driver) => driver.type);
  if (!type) {
    issues.error({ at: node.at, path: `${node.path}.type` }, "is missing", `may be ${listed(types, "or")}`);
    return undefined;
  }
  const text = type.kind === "scalar" ? type.text : "";
  const driver = drivers.find((candidate) => candidate.type === text);
  if (!driver && !(type.kind === "scalar" && type.broken))
    issues.error(type, `must be ${listed(types, "or")}${text === "" ? "" : `, is ${text}`}`, suggestion(text, types));
  return driver;
}

/** What of a source is its driver's. Everything that is nobody's is an issue. */
function driverOptions(source: MapNode, driver: Driver, issues: Issues): MapNode {
  const own = Object.keys(driver.schema.shape);
  const cascaded = cascadedOfSource(driver);
  const names = [...sourceKeys, ...own, ...cascaded];
  for (const key of source.entries.keys()) {
    if (names.includes(key)) continue;
    if (Object.hasOwn(driver.tag.shape, key) || key === "input")
      issues.error(
        { at: source.entries.get(key)?.key ?? source.at, path: `${source.path}.${key}` },
        "stands on a tag, not on a source",
        "write it in an entry of tags",
      );
    else unknownKey(source, key, names, issues);
  }
  return { ...source, entries: new Map([...source.entries].filter(([key]) => own.includes(key))) };
}

/** The one rule and the one address that an expanded tag comes to. */
function checkTag({ fields }: ExpandedTag, driver: Driver, issues: Issues) {
  const ruleKeys = Object.keys(tagOptions.shape);
  const addressKeys = Object.keys(driver.tag.shape);
  for (const key of fields.entries.keys())
    if (!ruleKeys.includes(key) && !addressKeys.includes(key)) unknownKey(fields, key, tagNames(driver), issues);
  const some = (keys: readonly string[]): MapNode => ({
    ...fields,
    entries: new Map([...fields.entries].filter(([key]) => keys.includes(key))),
  });
  const rule = checkNode(tagOptions, some(ruleKeys), issues);
  const address = checkNode(driver.tag, some(addressKeys), issues);
  if (rule === undefined || address === undefined) return undefined;
  const captured = driver.captures?.(address) ?? [];
  checkInput(rule, captured, fields, issues);
  checkSignalTexts(child(fields, "signal"), captured, issues);
  return { rule, tag: { ...address, every: rule.every } };
}

function checkInput({ input }: TagRule, captured: readonly string[], fields: MapNode, issues: Issues): void {
  const node = child(fields, "input") ?? fields;
  if (node.kind === "scalar" && node.broken) return;
  const names = placeholders(input);
  for (const name of names) if (!captured.includes(name)) notFilled(name, captured, node, issues);
  const wrong = new Set(Array.from(literals(input).join("")).filter((letter) => !isInputId(letter)));
  if (wrong.size > 0)
    issues.error(
      node,
      `must be an Input ID: letters a-z and A-Z, digits and - _ : . # + /, has ${[...wrong].map((letter) => JSON.stringify(letter)).join(" ")}`,
      /[{}]/.test([...wrong].join(""))
        ? "braces hold the name of a variable or of what the address captures, as in {room}"
        : undefined,
    );
  else if (names.length === 0 && !isInputId(input))
    issues.error(node, `must be an Input ID: at most 128 characters, has ${input.length}`);
  if (names.length > 0 || captured.length === 0) return;
  if (captured.includes("i"))
    issues.error(node, "needs {i} in it, since [*] gives several values", "as in hall.{i}.temp");
  else
    issues.warn(
      node,
      `whatever ${listed(
        captured.map((name) => `{${name}}`),
        "and",
      )} captures goes to one Input ID`,
      "put the names into input where each is a signal of its own",
    );
}

function notFilled(name: string, captured: readonly string[], node: ConfigNode, issues: Issues): void {
  const can =
    captured.length === 0
      ? "the address of this tag captures nothing; give it under vars"
      : `this tag captures ${listed(captured, "and")}; other names are given under vars`;
  issues.error(
    node,
    `nothing fills {${name}}`,
    suggestion(name, captured)?.startsWith("did") ? `${suggestion(name, captured)} (${can})` : can,
  );
}

/** Names in braces anywhere in `signal`. */
function checkSignalTexts(node: ConfigNode | undefined, captured: readonly string[], issues: Issues): void {
  if (!node) return;
  if (node.kind === "map") for (const { value } of node.entries.values()) checkSignalTexts(value, captured, issues);
  else if (node.kind === "list") for (const item of node.items) checkSignalTexts(item, captured, issues);
  else
    for (const name of placeholders(node.text)) if (!captured.includes(name)) notFilled(name, captured, node, issues);
}

/** An Input ID that two tags write to would mix their points. */
function claimInput(input: string, { fields, origin }: ExpandedTag, { inputs, issues }: SourceParts): void {
  if (placeholders(input).length > 0 || !isInputId(input)) return;
  const node = child(fields, "input");
  // Where a template serves several devices, its line says nothing: the device does.
  const place = origin.at === fields.at && node ? node : origin;
  const first = inputs.get(input);
  if (!first) inputs.set(input, place);
  else {
    const where = first.at.file === place.at.file ? `line ${first.at.line}` : `${first.at.file}:${first.at.line}`;
    issues.error(
      place,
      `Input ID ${input} is used twice, first in ${where} (${first.path})`,
      "every Input ID takes the points of one tag; give one of them another",
    );
  }
}
