// Reads structures from a type dictionary in XML, as servers before OPC UA 1.04 describe them (OPC 10000-3, Annex C).
// Optional fields: OPC 10000-6, 5.2.7 and 5.2.8. Pure.
import { readValues, type Services } from "../session/services.ts";
import type { StructureField, StructureType } from "../types/structure.ts";
import { builtIn, builtInTypes } from "../types/value.ts";

/** Namespaces of built-in types. */
const standard = ["http://opcfoundation.org/BinarySchema/", "http://opcfoundation.org/UA/"];

interface Element {
  readonly name: string;
  readonly attributes: ReadonlyMap<string, string>;
}

/**
 * The structures of a dictionary by name. References to other structures are keys made by `keyOf`. Omits structures
 * that it cannot decode, and those that contain them.
 */
export function readDictionary(xml: string, keyOf: (name: string) => string): Map<string, StructureType> {
  const own = new Map<string, Element[]>();
  const enumerations = new Set<string>();
  let root: Element["attributes"] = new Map();
  let fields: Element[] | undefined;
  for (const element of elementsOf(xml)) {
    const name = element.attributes.get("Name") ?? "";
    if (element.name === "TypeDictionary") root = element.attributes;
    else if (element.name === "StructuredType") own.set(name, (fields = []));
    else if (element.name === "EnumeratedType") {
      fields = undefined;
      // Standard enumerations have 32 bits, as those of nearly all servers.
      if ((element.attributes.get("LengthInBits") ?? "32") === "32") enumerations.add(name);
    } else if (element.name === "Field") fields?.push(element);
    else if (element.name === "OpaqueType") fields = undefined;
  }
  const typeOf = (text: string): number | string | undefined => {
    const [prefix = "", name = ""] = text.split(":");
    const namespace = root.get(`xmlns:${prefix}`) ?? "";
    if (standard.includes(namespace)) return name === "CharArray" ? builtInTypes.String : builtInTypes[name];
    // Types of other dictionaries are unknown here.
    if (namespace !== root.get("TargetNamespace")) return undefined;
    if (enumerations.has(name)) return builtIn.int32;
    return own.has(name) ? keyOf(name) : undefined;
  };
  const types = new Map<string, StructureType>();
  for (const [name, given] of own) {
    const type = structureOf(given, typeOf);
    if (type) types.set(name, type);
  }
  return types;
}

type TypeOf = (text: string) => number | string | undefined;

function structureOf(given: readonly Element[], typeOf: TypeOf): StructureType | undefined {
  const bits: string[] = [];
  let bitCount = 0;
  const fields: (StructureField & { readonly switch: string | undefined; readonly at: number | undefined })[] = [];
  for (const { attributes } of given) {
    const [name = "", typeName = ""] = [attributes.get("Name"), attributes.get("TypeName")];
    if (typeName.endsWith(":Bit")) {
      // Bits must come first; they show which fields are present.
      if (fields.length > 0) return undefined;
      const length = Number(attributes.get("Length") ?? 1);
      if (length === 1) bits.push(name);
      bitCount += length;
      continue;
    }
    const type = typeOf(typeName);
    // Known servers use neither fixed lengths nor terminators.
    if (type === undefined || attributes.has("Length") || attributes.has("Terminator")) return undefined;
    const counter = attributes.get("LengthField");
    if (counter !== undefined) {
      const before = fields.pop();
      if (before?.name !== counter || before.type !== builtIn.int32) return undefined;
    }
    const at = attributes.get("SwitchValue");
    fields.push({
      name,
      type,
      dimensions: counter === undefined ? 0 : 1,
      optional: false,
      switch: attributes.get("SwitchField"),
      at: at === undefined ? undefined : Number(at),
    });
  }
  const plain = ({ name, type, dimensions }: StructureField, optional = false) => ({
    name,
    type,
    dimensions,
    optional,
  });
  const switches = fields.filter((field) => field.switch !== undefined);
  if (switches.length === 0)
    return bitCount > 0 ? undefined : { kind: "plain", fields: fields.map((each) => plain(each)) };
  if (bitCount > 0) {
    const named = bits.filter((bit) => switches.some((field) => field.switch === bit));
    const inOrder = bitCount === 32 && switches.every((field, i) => field.switch === bits[i] && field.at === undefined);
    if (!inOrder || named.length !== switches.length) return undefined;
    return { kind: "optional", fields: fields.map((each) => plain(each, each.switch !== undefined)) };
  }
  const [selector, ...choices] = fields;
  const isUnion = choices.every((field, i) => field.switch === selector?.name && field.at === i + 1);
  return isUnion && selector ? { kind: "union", fields: choices.map((each) => plain(each)) } : undefined;
}

const tag = /<([\w.:-]+)((?:\s+[\w.:-]+\s*=\s*(?:"[^"]*"|'[^']*'))*)\s*\/?>/g;
const attribute = /([\w.:-]+)\s*=\s*(?:"([^"]*)"|'([^']*)')/g;
const entities: Readonly<Record<string, string>> = { amp: "&", lt: "<", gt: ">", quot: '"', apos: "'" };

/** Yields the start tags in order; names without prefix. */
function* elementsOf(xml: string): Generator<Element> {
  for (const [, name = "", text = ""] of xml.replaceAll(/<!--[\s\S]*?-->/g, "").matchAll(tag)) {
    const attributes = [...text.matchAll(attribute)].map(
      ([, key = "", double, single]) => [key, plainText(double ?? single ?? "")] as const,
    );
    yield { name: name.split(":").at(-1) ?? "", attributes: new Map(attributes) };
  }
}

function plainText(text: string): string {
  return text.replaceAll(/&(?:#(\d+)|#x([\da-fA-F]+)|(\w+));/g, (all, decimal, hex, name) => {
    if (name !== undefined) return entities[name] ?? all;
    const code = decimal === undefined ? Number.parseInt(hex, 16) : Number(decimal);
    return code <= 0x10ffff ? String.fromCodePoint(code) : all;
  });
}

const hasDescription = "i=39";
const hasComponent = "i=47";

/** The structures of a dictionary by key, and the key of the requested one. */
interface Described {
  readonly key: string;
  readonly types: Iterable<readonly [key: string, type: StructureType]>;
}

/**
 * Finds the dictionary and type of an encoding (OPC 10000-5, 9.6 before 1.04): the encoding has a description, which is
 * a component of the dictionary. Undefined if there is none. Rejects with `SOURCE_*` if the server cannot be read.
 */
export async function findStructure(
  services: Services,
  encoding: string,
  signal: AbortSignal,
): Promise<Described | undefined> {
  const [[description] = []] = await services.related([encoding], "Forward", hasDescription, signal);
  if (!description) return undefined;
  const [[dictionary] = []] = await services.related([description], "Inverse", hasComponent, signal);
  if (!dictionary) return undefined;
  const [name, content] = await readValues(services, [description, dictionary], signal);
  const [text, bytes]: unknown[] = [name?.value?.value, content?.value?.value];
  if (typeof text !== "string" || !(bytes instanceof Uint8Array)) return undefined;
  const keyOf = (each: string) => `${dictionary.toString()} ${each}`;
  const types = readDictionary(new TextDecoder().decode(bytes), keyOf);
  return { key: keyOf(text), types: types.entries().map(([each, type]) => [keyOf(each), type]) };
}
