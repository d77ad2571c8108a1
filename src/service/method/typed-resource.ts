// Signals and items as the current dialect shows them: with type, attributes and relationships, and a hash of each.
import { createHash } from "node:crypto";
import type { Attributes, ItemRecord, Signal } from "../store/resource.ts";
import { metaTime } from "./resource-view.ts";

export interface TypedResource {
  readonly id: string;
  readonly type: "signals" | "items";
  readonly meta: object;
  readonly attributes: object;
  readonly relationships: object;
}

export function signalResource(signal: Signal): TypedResource {
  const { id, attributes, input, integration, item } = signal;
  return {
    id,
    type: "signals",
    ...describe(
      signal,
      { ...shown(attributes), input },
      {
        integration: { data: { type: "integrations", id: integration } },
        item: { data: item === null ? null : { type: "items", id: item } },
      },
    ),
  };
}

export function itemResource(item: ItemRecord): TypedResource {
  return { id: item.id, type: "items", ...describe(item, { ...shown(item.attributes), visible: item.visible }, {}) };
}

/** In the order that the hash is made over. */
function shown(attributes: Attributes) {
  const { name, description, type, sourceType, engUnit, sampleInterval, gapDetection, labels, enumValues } = attributes;
  return { name, description, valueType: type, sourceType, engUnit, sampleInterval, gapDetection, labels, enumValues };
}

function describe(
  { attributes: { annotations }, createdAt, updatedAt }: Signal | ItemRecord,
  attributes: object,
  relationships: object,
): Pick<TypedResource, "meta" | "attributes" | "relationships"> {
  const meta = {
    annotations,
    attributesHash: hash(attributes),
    relationshipsHash: hash(relationships),
    createdAt: metaTime(createdAt),
    updatedAt: metaTime(updatedAt),
  };
  return { meta, attributes, relationships };
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
