// Signals and items as answers show them: in the specification's dialect, and in the current one with type, attributes and
// relationships, and a hash of each.
import { createHash } from "node:crypto";
import { isSince } from "../../wire/method.ts";
import type { ItemSelectView, SignalSelectView } from "../../wire/signal-view.ts";
import { isGiven, type MethodCall, membersOf, readFlag } from "../call/params.ts";
import { type Attributes, contentHash, type ItemRecord, type Signal } from "../store/resource.ts";

export function selectedSignalView(signal: Signal): SignalSelectView {
  return { ...selectedItemView(signal), inputId: signal.input, item: signal.item };
}

export function selectedItemView({ id, attributes, createdAt, updatedAt }: Signal | ItemRecord): ItemSelectView {
  return {
    id,
    meta: { contentHash: contentHash(attributes), createdAt: metaTime(createdAt), updatedAt: metaTime(updatedAt) },
    ...attributes,
  };
}

/** Times of resources are shown to the millisecond, without trailing zeros. */
function metaTime(ms: number): string {
  return new Date(ms).toISOString().replace(/\.?0+Z$/, "Z");
}

export interface TypedResource {
  readonly id: string;
  readonly type: "signals" | "items";
  readonly meta: { readonly attributesHash: string; readonly relationshipsHash: string };
  readonly attributes: object;
  readonly relationships: object;
}

export function signalResource(signal: Signal): TypedResource {
  const { attributes, input, integration, item } = signal;
  return typed(
    "signals",
    signal,
    { ...shown(attributes), input },
    {
      integration: { data: { type: "integrations", id: integration } },
      item: { data: item === null ? null : { type: "items", id: item } },
    },
  );
}

export function itemResource(item: ItemRecord): TypedResource {
  return typed("items", item, { ...shown(item.attributes), visible: item.visible }, {});
}

/** In the order that the hash is made over. */
function shown(attributes: Attributes) {
  const { name, description, type, sourceType, engUnit, sampleInterval, gapDetection, labels, enumValues } = attributes;
  return { name, description, valueType: type, sourceType, engUnit, sampleInterval, gapDetection, labels, enumValues };
}

function typed(
  type: TypedResource["type"],
  { id, attributes: { annotations }, createdAt, updatedAt }: Signal | ItemRecord,
  attributes: object,
  relationships: object,
): TypedResource {
  const meta = {
    annotations,
    attributesHash: hash(attributes),
    relationshipsHash: hash(relationships),
    createdAt: metaTime(createdAt),
    updatedAt: metaTime(updatedAt),
  };
  return { id, type, meta, attributes, relationships };
}

/** SHA-1 over the JSON as the hosted service writes it: keys of maps sorted, `& < >` escaped, a line feed at the end. */
function hash(value: object): string {
  return createHash("sha1")
    .update(`${canonical(value)}\n`)
    .digest("hex");
}

function canonical(value: unknown, sorted = false): string {
  if (Array.isArray(value)) return `[${value.map((element) => canonical(element)).join(",")}]`;
  if (typeof value !== "object" || value === null) return escaped(JSON.stringify(value));
  const entries = Object.entries(value);
  // JavaScript keeps keys that are numbers in the order of the numbers; the hash wants the order of texts.
  if (sorted) entries.sort(([a], [b]) => (a < b ? -1 : 1));
  const members = entries.map(
    ([key, member]) => `${escaped(JSON.stringify(key))}:${canonical(member, key === "labels" || key === "enumValues")}`,
  );
  return `{${members.join(",")}}`;
}

function escaped(json: string): string {
  return json.replace(/[&<>\u2028\u2029]/g, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

/** Makes the answers of a call in the current dialect. */
export interface Answers {
  /** An answer with these data; `items` are those to be included if the request wants them. */
  of(data: object, total: number, items: readonly ItemRecord[]): object;
  /** The same with a data frame. */
  ofFrame(frame: object, total: number, items: readonly ItemRecord[]): object;
  /** The same whose data are resources. */
  ofResources<Resource extends { readonly id: string }>(
    resources: readonly Resource[],
    view: (resource: Resource) => TypedResource,
    total: number,
    items: readonly ItemRecord[],
  ): object;
}

/** Reads `include` and `format`; null and absent members have their defaults. */
export function readAnswerFormat({ params, version, faults }: MethodCall, about: "resources" | "data"): Answers {
  const { include } = params;
  if (isGiven(include) && !Array.isArray(include)) faults.add("include", "must be an array of texts");
  const names: readonly unknown[] = Array.isArray(include) ? include : [];
  for (const [index, name] of names.entries())
    if (name !== "item" && name !== "items") faults.add(`include.${index}`, 'can be "item"');
  const given = membersOf(params["format"], "format", faults);
  const flag = (name: string, otherwise: boolean) => readFlag(given[name], `format.${name}`, faults, otherwise);
  // False: `data` is a map by ID, and `included` one array of all types.
  const dataAsArray = flag("dataAsArray", about === "resources");
  const groupIncludedByType = flag("groupIncludedByType", false);
  const refused = isSince(version, "1.2beta1") ? unknownForms[about] : [];
  for (const name of refused)
    if (flag(name, false)) faults.add(`format.${name}`, "must be false: how that form looks is not public");
  const hashes = !isSince(version, "1.2beta1") || flag("includeResourceHashFields", true);
  // clarify-go at 1.2alpha1 fails over a format with more members.
  const added = { includeResourceHashFields: hashes, ...Object.fromEntries(refused.map((name) => [name, false])) };
  const format = { dataAsArray, groupIncludedByType, ...(version === "1.2" && added) };
  const answers: Answers = {
    of(data, total, items) {
      const views = names.length > 0 ? items.map((item) => shownAs(itemResource(item), hashes)) : [];
      const included = groupIncludedByType ? { items: views } : views;
      // A public client stumbles over an `included` that is empty, so then there is none.
      return { meta: { total, format }, data, ...(views.length > 0 && { included }) };
    },
    ofFrame: (frame, total, items) => answers.of(dataAsArray ? [frame] : frame, total, items),
    ofResources(resources, view, total, items) {
      const shownOf = (resource: (typeof resources)[number]) => shownAs(view(resource), hashes);
      return answers.of(dataAsArray ? resources.map(shownOf) : byId(resources, shownOf), total, items);
    },
  };
  return answers;
}

const unknownForms = { resources: ["flattenResourceFields"], data: ["flattenResourceFields", "usePathErrors"] };

function shownAs(resource: TypedResource, hashes: boolean): object {
  const { attributesHash: _, relationshipsHash: __, ...meta } = resource.meta;
  return hashes ? resource : { ...resource, meta };
}

/** `view` of each, by ID. */
export function byId<Resource extends { readonly id: string }>(
  resources: readonly Resource[],
  view: (resource: Resource) => object,
): object {
  return Object.fromEntries(resources.map((resource) => [resource.id, view(resource)]));
}
