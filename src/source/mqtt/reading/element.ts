// Identifies the signal of a payload element by its captures: names, and the matches of `[*]`.

import type { MqttTag } from "../config/tag.ts";
import type { TagAddress } from "../config/tag-address.ts";
import { follow, isKind, type JsonPath, levelsOf, type PathMatch, scalarText } from "../decoders/json-path.ts";
import type { NameTables } from "./name-tables.ts";
import type { Element, Route } from "./topic-router.ts";

/** Cached capture combinations per topic. Further ones are created for each message. */
const maxRemembered = 1_000;
/** Longest cached key, in characters. */
const maxKey = 512;

interface Payload {
  readonly document: unknown;
  readonly names: NameTables;
}

/**
 * The element of a match, for a tag with captures in the payload. Undefined: `input` cannot distinguish it. Throws
 * `PayloadError` if a malformed element before it makes its position, which names it, unknown.
 */
export function elementOf(route: Route, found: PathMatch, { document, names: tables }: Payload): Element | undefined {
  const { captures, from, tag } = route;
  const { address } = route.way;
  const { captureNames: names, depth, levelNames } = address;
  const isPlaced = (_: string, k: number) => ((found.positions >> k) & 1) === 1 && !isLeftOut(k, found, address);
  if (found.displaced && (levelNames.some(isPlace) || found.keys.some(isPlaced))) throw found.displaced;
  const texts = names.map((name) => captured(document, address.capture[name], found.keys));
  if (tag.names) {
    const id = texts[names.indexOf(tag.names.of)]?.text ?? "";
    route.nameTable ??= tables.of(tag.names, captures);
    const text = route.nameTable.get(id) ?? id;
    texts.push({ text, identity: text });
  }
  // The matches of `[*]`, without positions that do not identify the element.
  const own = depth === 0 ? [] : found.keys.filter((_, k) => !isLeftOut(k, found, address));
  // Includes positions only if the tag uses them, since a batch would create one element per position.
  const places = levelNames.some(isPlace) ? found.keys : own;
  const key = [...texts.map(({ identity }) => identity), ...places, found.positions].join("\0");
  const elements = (route.elements ??= new Map());
  if (elements.has(key)) return elements.get(key);
  const made: Record<string, string> = { ...captures };
  for (const [i, name] of names.entries()) made[name] = texts[i]?.text ?? "";
  if (tag.names) made["name"] = texts.at(-1)?.text ?? "";
  const complete =
    levelNames.every((name) => fillLevel(made, name, found, own, tag)) &&
    found.keys.every((_, k) => !isLeftOut(k, found, address) || isIdentified(k, texts, route));
  const distinct = texts.filter((_, i) => isDistinct(names[i], tag)).map(({ identity }) => identity);
  if (own.length > 0) distinct.push(own.map((name) => quoted(name, own.length > 1)).join("."));
  const element = complete
    ? { captures: made, from: distinct.length === 0 ? from : `${from} ${distinct.join(" ")}` }
    : undefined;
  if (elements.size < maxRemembered && key.length <= maxKey) elements.set(key, element);
  return element;
}

/** Whether key `k` is a position that identifies nothing: in a batch, or of a record under `.**`. */
function isLeftOut(k: number, { positions }: PathMatch, { batchDepth, value }: TagAddress): boolean {
  return ((positions >> k) & 1) === 1 && (k < batchDepth || isLeaf(k, value));
}

function isLeaf(k: number, value: JsonPath | undefined): boolean {
  return value !== undefined && isKind(value.steps.at(-1), "leaves") && k === levelsOf(value) - 1;
}

/** Whether the element is identified despite an omitted position: by its name, its time, or a position in `input`. */
function isIdentified(k: number, texts: readonly Captured[], { way, tag }: Route): boolean {
  const { captureNames, capture, levelNames, time, value } = way.address;
  if (tag.fills === undefined || levelNames.includes(`i${k + 1}`)) return true;
  if (isLeaf(k, value)) return !levelNames.includes("i") || tag.descriptive?.includes("i") === true;
  const through = (path: JsonPath | undefined) => path !== undefined && levelsOf(path) > k;
  const own = texts.filter((_, i) => isDistinct(captureNames[i], tag) && through(capture[captureNames[i] ?? ""]));
  return own.length === 0 ? [time?.at ?? []].flat().some(through) : own.some(({ identity }) => identity !== "");
}

/** Sets the capture `name`. False: `input` needs it and it is empty. */
function fillLevel(
  made: Record<string, string>,
  name: string,
  { keys, positions }: PathMatch,
  own: readonly string[],
  tag: MqttTag,
): boolean {
  const last = keys.length - 1;
  if (isPlace(name)) made[name] = keys[Number(name.slice(1)) - 1] ?? "";
  else if (name === "key") made[name] = ((positions >> last) & 1) === 0 ? (keys[last] ?? "") : "";
  else made[name] = own.join(".");
  if (made[name] !== "" || tag.fills === undefined || !isDistinct(name, tag)) return true;
  // `{i}` may be empty if a field names the element.
  return name === "i" && Object.keys(tag.capture).some((each) => tag.fills?.includes(each) && isDistinct(each, tag));
}

/** Whether `name` is `i1`, `i2` and so on: the match of one `[*]`. */
function isPlace(name: string): boolean {
  return /^i\d+$/.test(name);
}

/** Whether a capture distinguishes inputs. A name from a table does not count, since it may become known later. */
function isDistinct(name: string | undefined, { descriptive }: MqttTag): boolean {
  return name !== undefined && descriptive?.includes(name) !== true;
}

interface Captured {
  readonly text: string;
  /** Distinguishes objects with equal texts under different names. */
  readonly identity: string;
}

const nothing: Captured = { text: "", identity: "" };

/** Caches captured objects, since each value of an element captures the same object again. */
const objectTexts = new WeakMap<object, Captured>();

/** A scalar as text. For an object, such as Telegraf's tags, its texts in the order of their names. */
function captured(document: unknown, path: JsonPath | undefined, keys: readonly string[]): Captured {
  const value = path && follow(document, path, keys);
  if (typeof value !== "object" || value === null) {
    const text = scalarText(value) ?? "";
    return text === "" ? nothing : { text, identity: quoted(text) };
  }
  const known = objectTexts.get(value);
  if (known) return known;
  const made = capturedObject(value);
  objectTexts.set(value, made);
  return made;
}

function capturedObject(object: object): Captured {
  const members = Object.entries(object).flatMap(([name, member]) => {
    const text = scalarText(member);
    return text === undefined || text === "" ? [] : [[name, text] as const];
  });
  const sorted = members.toSorted(([a], [b]) => (a < b ? -1 : 1));
  return {
    text: sorted.map(([, text]) => text).join("."),
    identity: sorted.map((member) => member.map((text) => quoted(text)).join("=")).join(","),
  };
}

/** Quotes a text that contains a separator of addresses or keys. */
function quoted(text: string, inDots = false): string {
  return /["=,\0]/.test(text) || (inDots && text.includes(".")) ? JSON.stringify(text) : text;
}
