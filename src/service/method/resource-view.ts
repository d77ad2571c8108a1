// Signals and items in responses: in the specification's dialect, and in the current one with hashes.
import { createHash } from "node:crypto";
import { isSince } from "../../wire/method.ts";
import type { ItemSelectView, SignalSelectView } from "../../wire/signal-view.ts";
import { isGiven, type MethodCall, membersOf, readFlag } from "../call/params.ts";
import { type Attributes, contentHash, type ItemRecord, type Signal } from "../store/resource-store.ts";

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

/** Resource times have milliseconds without trailing zeros. */
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

/** In the order in which the hash is computed. */
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

/** SHA-1 of the JSON as the hosted service writes it: map keys sorted, `& < >` escaped, with a final line feed. */
function hash(value: object): string {
  return createHash("sha1")
    .update(`${canonical(value)}\n`)
    .digest("hex");
}

function canonical(value: unknown, sorted = false): string {
  if (Array.isArray(value)) return `[${value.map((element) => canonical(element)).join(",")}]`;
  if (typeof value !== "object" || value === null) return escaped(JSON.stringify(value));
  const entries = Object.entries(value);
  // JavaScript orders numeric keys by number, the hash by text.
  if (sorted) entries.sort(([a], [b]) => (a < b ? -1 : 1));
  const members = entries.map(
    ([key, member]) => `${escaped(JSON.stringify(key))}:${canonical(member, key === "labels" || key === "enumValues")}`,
  );
  return `{${members.join(",")}}`;
}

function escaped(json: string): string {
  return json.replace(/[&<>\u2028\u2029]/g, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

/**
 * Builds the responses of a call in the current dialect, by its `include` and `format`. Null and missing members take
 * their defaults. `items` of a response are included if requested.
 */
export function readAnswerFormat({ params, version, faults }: MethodCall, about: "resources" | "data") {
  const { include } = params;
  if (isGiven(include) && !Array.isArray(include)) faults.add("include", "must be an array of texts");
  const names: readonly unknown[] = Array.isArray(include) ? include : [];
  for (const [index, name] of names.entries())
    if (name !== "item" && name !== "items") faults.add(`include.${index}`, 'can be "item"');
  const given = membersOf(params["format"], "format", faults);
  const flag = (name: string, otherwise: boolean) => readFlag(given[name], `format.${name}`, faults, otherwise);
  // False: `data` is a map by ID, and `included` is one array of all types.
  const dataAsArray = flag("dataAsArray", about === "resources");
  const groupIncludedByType = flag("groupIncludedByType", false);
  const refused = isSince(version, "1.2beta1") ? unknownForms[about] : [];
  for (const name of refused)
    if (flag(name, false)) faults.add(`format.${name}`, "must be false: how that form looks is not public");
  const hashes = !isSince(version, "1.2beta1") || flag("includeResourceHashFields", true);
  // clarify-go at 1.2alpha1 rejects a format with more members.
  const added = { includeResourceHashFields: hashes, ...Object.fromEntries(refused.map((name) => [name, false])) };
  const format = { dataAsArray, groupIncludedByType, ...(version === "1.2" && added) };
  const answerOf = (data: object, total: number, items: readonly ItemRecord[]) => {
    const views = names.length > 0 ? items.map((item) => shownAs(itemResource(item), hashes)) : [];
    const included = groupIncludedByType ? { items: views } : views;
    // A public client fails on an empty `included`, so it is left out.
    return { meta: { total, format }, data, ...(views.length > 0 && { included }) };
  };
  return {
    /** A response with a data frame. */
    ofFrame: (frame: object, total: number, items: readonly ItemRecord[]) =>
      answerOf(dataAsArray ? [frame] : frame, total, items),
    /** A response with resources. */
    ofResources<Resource extends { readonly id: string }>(
      resources: readonly Resource[],
      view: (resource: Resource) => TypedResource,
      total: number,
      items: readonly ItemRecord[],
    ) {
      const shownOf = (resource: Resource) => shownAs(view(resource), hashes);
      return answerOf(dataAsArray ? resources.map(shownOf) : byId(resources, shownOf), total, items);
    },
  };
}

const unknownForms = { resources: ["flattenResourceFields"], data: ["flattenResourceFields", "usePathErrors"] };

function shownAs(resource: TypedResource, hashes: boolean): object {
  const { attributesHash: _, relationshipsHash: __, ...meta } = resource.meta;
  return hashes ? resource : { ...resource, meta };
}

export function byId<Resource extends { readonly id: string }>(
  resources: readonly Resource[],
  view: (resource: Resource) => object,
): object {
  return Object.fromEntries(resources.map((resource) => [resource.id, view(resource)]));
}
