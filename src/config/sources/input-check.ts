// Checks a tag beyond its schema. Input ID: placeholders are filled, characters are valid, and no other tag uses it.
// Metadata: placeholders are filled, and states are numbered. Dead band: a percentage has a range to refer to.
import type { Driver } from "../../core/driver.ts";
import { isInputId } from "../../core/point.ts";
import { literals, placeholders } from "../../mapping/input-template.ts";
import type { TagRule } from "../../mapping/options.ts";
import type { Issues, Place } from "../nodes/issue.ts";
import { type ConfigNode, childNode, type MapNode, type ScalarNode, samePosition } from "../nodes/node.ts";
import { joinNames, nearest } from "../nodes/suggest.ts";
import type { ExpandedTag } from "./expand.ts";

/** The tag that uses each Input ID or template, across all sources. */
export type UsedInputs = Map<string, UsedInput>;

type Use = Pick<TagRule, "shared" | "sameTime">;

type UsedInput = Place & Use;

/** `captured`: the names that the tag's address captures; undefined if the address is invalid. */
export function checkInput(
  tag: ExpandedTag,
  captured: readonly string[] | undefined,
  use: Use,
  inputs: UsedInputs,
  issues: Issues,
): void {
  const node = childNode(tag.fields, "input");
  // The schema reports missing and non-text inputs.
  if (node?.kind !== "scalar" || node.broken || node.text === "") return;
  const names = placeholders(node.text);
  if (captured) for (const name of names) if (!captured.includes(name)) notFilled(name, captured, node, tag, issues);
  if (!checkLetters(node, issues)) return;
  if (names.length === 0) claim(node.text, tag, use, inputs, issues);
  else checkTemplate(node, tag.origin, use, inputs, issues);
}

/** Warns if two sources or devices share a template, since equal captures give the same Input ID. */
function checkTemplate(node: ScalarNode, { path }: Place, use: Use, inputs: UsedInputs, issues: Issues): void {
  const first = inputs.get(node.text);
  if (!first) {
    inputs.set(node.text, { at: node.at, path, ...use });
    return;
  }
  if (use.shared && first.shared) return checkSameTime(node, use, first, issues);
  if (!samePosition(first.at, node.at) && sourceOf(first.path) === sourceOf(path)) return;
  issues.warn(
    node,
    `serves ${first.path} and ${path}, which come to one Input ID where they capture the same; the second one is refused`,
    "put a variable that differs between them into input, as in {site}.{room}.temp with vars: { site: north }",
  );
}

/** A value of the tag with `replace` overwrites the value that the tag with `keep` had at the same time. */
function checkSameTime(place: Place, { sameTime }: Use, first: UsedInput, issues: Issues): void {
  if (sameTime !== first.sameTime)
    issues.warn(
      place,
      `shares its Input ID with ${first.path}, which has sameTime: ${first.sameTime}, and has ${sameTime} itself; of two values with one time the first can be lost`,
      "write the same sameTime on both tags",
    );
}

/** `sources.hall.tags[3]` → `sources.hall` */
function sourceOf(path: string): string {
  return path.replace(/\.(?:tags|devices)\[.*$/, "");
}

/** Checks that all characters outside of braces are valid in an Input ID. */
function checkLetters(node: ScalarNode, issues: Issues): boolean {
  const parts = literals(node.text).join("");
  const wrong = [...new Set(Array.from(parts).filter((letter) => !isInputId(letter)))];
  if (wrong.length === 0) {
    if (parts.length <= 128) return true;
    issues.error(node, `must be an Input ID: at most 128 characters, has ${parts.length}`, node.note);
    return false;
  }
  const has = node.reference === undefined ? `, has ${wrong.map((letter) => JSON.stringify(letter)).join(" ")}` : "";
  const braces = "braces hold the name of a variable or of what the address captures, as in {room}";
  issues.error(
    node,
    `must be an Input ID: letters a-z and A-Z, digits and - _ : . # + /${has}`,
    wrong.some((letter) => "{}".includes(letter)) ? braces : node.note,
  );
  return false;
}

function notFilled(
  name: string,
  captured: readonly string[],
  node: ConfigNode,
  { fields, origin }: ExpandedTag,
  issues: Issues,
): void {
  const near = nearest(name, captured);
  // A tag of a template stands elsewhere than the device that uses it.
  const where = origin.at === fields.at ? "" : ` of ${origin.path}`;
  const can =
    captured.length === 0
      ? `the address of this tag captures nothing; give the name under vars${where}`
      : `this tag captures ${joinNames(captured, "and")}; other names are given under vars${where}`;
  const meant = near === undefined ? "" : `; did you mean {${near}}?`;
  issues.error(node, `nothing fills {${name}}${meant}`, can);
}

/** Checks the placeholders in all texts of `signal`. */
export function checkSignalTexts(tag: ExpandedTag, captured: readonly string[], issues: Issues): void {
  for (const node of scalarsIn(childNode(tag.fields, "signal")))
    for (const name of placeholders(node.text))
      if (!captured.includes(name)) notFilled(name, captured, node, tag, issues);
}

/** Warns of state names that have no effect, or that do not determine the number of a state. */
export function checkStates({ fields }: ExpandedTag, { type, enumValues }: TagRule["signal"], issues: Issues): void {
  if (enumValues === undefined) return;
  const place = childNode(childNode(fields, "signal"), "enumValues") ?? fields;
  if (type !== "enum")
    issues.warn(
      place,
      "has no effect without type: enum, unless the device states that the signal is one",
      "write signal: { type: enum, enumValues: { ... } }",
    );
  const names = Object.values(enumValues);
  const twice = names.find((name, i) => names.indexOf(name) < i);
  if (twice !== undefined)
    issues.warn(
      place,
      `gives two states the name ${JSON.stringify(twice)}; where the device sends it as text, the last of them is stored`,
      "values: { ... } says which number a text stands for",
    );
}

/** Reports a dead band in percent of a tag whose range is not known. */
export function checkPercent({ report, valid }: TagRule, fields: MapNode, driver: Driver, issues: Issues): void {
  if (report === undefined || report === "off" || typeof report.deadband === "number") return;
  if (driver.ranges === true || (valid?.min !== undefined && valid.max !== undefined)) return;
  issues.error(
    childNode(childNode(fields, "report"), "deadband") ?? fields,
    "is a share of a range that is not known",
    `write valid: { min: ..., max: ... } on the tag, or the dead band as a number: ${driver.type} devices state no range`,
  );
}

function scalarsIn(node: ConfigNode | undefined): readonly ScalarNode[] {
  if (!node) return [];
  if (node.kind === "scalar") return [node];
  const inner = node.kind === "map" ? [...node.entries.values()].map(({ value }) => value) : node.items;
  return inner.flatMap(scalarsIn);
}

/** Reports an Input ID that two tags use, since their points would be mixed. */
function claim(input: string, { fields, origin }: ExpandedTag, use: Use, inputs: UsedInputs, issues: Issues): void {
  // If a template serves several devices, the position of the device tells more than the template's.
  const isWritten = origin.at === fields.at;
  const place = isWritten ? (childNode(fields, "input") ?? origin) : origin;
  const first = inputs.get(input);
  if (!first) {
    inputs.set(input, { at: place.at, path: place.path, ...use });
    return;
  }
  if (use.shared && first.shared) return checkSameTime(place, use, first, issues);
  const { file, line } = first.at;
  const where = file === place.at.file ? `line ${line}` : `${file}:${line}`;
  issues.error(
    place,
    isWritten && samePosition(first.at, place.at)
      ? `Input ID ${input} is used twice: an alias, or another tagsFrom, repeats this tag`
      : `Input ID ${input} is used twice, first in ${where} (${first.path})`,
    use.shared || first.shared
      ? "each tag that feeds a shared Input ID must have shared: true"
      : "every Input ID takes the points of one tag; give one of them another, or write shared: true on both",
  );
}
