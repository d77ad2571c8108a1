// Reads name, description, unit, range and state names of variables. Once per connection.
import type { Runtime } from "../../../core/runtime.ts";
import type { Description } from "../../../core/source.ts";
import { attributes, type NodeId, readValues, type Services } from "../session/services.ts";
import { fieldText } from "../types/structure.ts";
import { member } from "../types/value.ts";
import type { Item } from "./items.ts";
import { isNodeId } from "./structure-types.ts";

type Facts = ReadonlyMap<string, unknown>;
/** Properties that are read if a variable has them (OPC 10000-8, 5.3). */
const properties = ["EURange", "EngineeringUnits", "EnumStrings", "EnumValues", "TrueState", "FalseState"];
/** Namespace 0 assigns ids up to 25 to built-in types; another data type may be an enumeration. */
const lastBuiltIn = 25;

type DescribedNode = Pick<Item, "tag" | "captures" | "address" | "nodeId" | "field">;

/** Omits items without any description. Rejects with `SOURCE_*` if the server cannot be read. */
export async function describe(
  services: Services,
  items: readonly DescribedNode[],
  signal: AbortSignal,
): Promise<Description[]> {
  const nodes = items.map(({ nodeId }) => nodeId);
  const wanted = [attributes.displayName, attributes.description, attributes.dataType];
  const answers = await services.read(
    nodes.flatMap((nodeId) => wanted.map((attributeId) => ({ nodeId, attributeId }))),
    signal,
  );
  const known = await readProperties(services, nodes, signal);
  const dataTypes = nodes.map((_, i) => answers[i * 3 + 2]?.value?.value);
  const enumerations = await readEnumerations(services, dataTypes, signal);
  return items.map(({ tag, captures, address, field }, i) => {
    const facts = known[i] ?? new Map<string, unknown>();
    const states = statesOf(facts) ?? enumerations.get(String(dataTypes[i]));
    const name = textOf(answers[i * 3]?.value?.value);
    const description = textOf(answers[i * 3 + 1]?.value?.value);
    const engUnit = textOf(member(facts.get("EngineeringUnits"), "displayName"));
    const range = rangeOf(facts.get("EURange"));
    const of = { tag, captures, address };
    const text = description && { description };
    // Unit, range and states describe the whole variable, not its fields.
    if (field) return { ...of, signal: { name: `${name ?? ""} ${fieldText(field)}`.trim(), ...text } };
    return {
      ...of,
      signal: {
        ...(name && { name }),
        ...text,
        ...(engUnit && { engUnit }),
        ...(states && { type: "enum" as const, enumValues: states }),
      },
      ...(range && { range }),
    };
  });
}

async function readProperties(services: Services, nodes: readonly NodeId[], signal: AbortSignal): Promise<Facts[]> {
  const children = await services.children(nodes, signal);
  const wanted = children.map((all) => all.filter(({ property, name }) => property && properties.includes(name)));
  const nodeIds = wanted.flat().map(({ nodeId }) => nodeId);
  const values = (await readValues(services, nodeIds, signal)).values();
  return wanted.map((all) => new Map(all.map(({ name }) => [name, values.next().value?.value?.value])));
}

/** State names of each data type that is an enumeration, by the type's NodeId. */
async function readEnumerations(
  services: Services,
  dataTypes: readonly unknown[],
  signal: AbortSignal,
): Promise<ReadonlyMap<string, Record<string, string> | undefined>> {
  const own = dataTypes.filter(isNodeId).filter((type) => type.namespace !== 0 || Number(type.value) > lastBuiltIn);
  const types = [...new Map(own.map((type) => [String(type), type] as const)).values()];
  const facts = await readProperties(services, types, signal);
  const states = new Map(types.map((type, i) => [String(type), statesOf(facts[i] ?? new Map())]));
  // A type without these properties may have a definition (OPC UA 1.04).
  const unnamed = types.filter((type) => !states.get(String(type)));
  const definitions = await readValues(services, unnamed, signal, attributes.dataTypeDefinition);
  for (const [i, type] of unnamed.entries()) {
    const fields = member(definitions[i]?.value?.value, "fields");
    const values = (Array.isArray(fields) ? fields : []).map((field: unknown) => {
      const displayName = member(field, "displayName");
      const name = textOf(displayName) === undefined ? { text: member(field, "name") } : displayName;
      return { value: member(field, "value"), displayName: name };
    });
    // The fields of a structure have no values.
    const named = values.filter(({ value }) => value !== undefined);
    states.set(String(type), statesOf(new Map([["EnumValues", named]])));
  }
  return states;
}

/** Takes EnumValues, EnumStrings, or the two states of a Boolean, whichever exists. */
function statesOf(facts: Facts): Record<string, string> | undefined {
  const names: Record<string, string> = {};
  const add = (key: number, text: unknown) => {
    const name = textOf(text);
    if (name !== undefined && Number.isInteger(key) && key >= 0 && key <= 9_999) names[String(key)] = name;
  };
  const values = facts.get("EnumValues");
  const texts = facts.get("EnumStrings");
  if (Array.isArray(values))
    for (const entry of values) add(low32(member(entry, "value")), member(entry, "displayName"));
  else if (Array.isArray(texts)) for (const [i, text] of texts.entries()) add(i, text);
  else {
    add(0, facts.get("FalseState"));
    add(1, facts.get("TrueState"));
  }
  return Object.keys(names).length > 0 ? names : undefined;
}

/** EnumValueType.value is an Int64, which the stack returns as high and low word. */
function low32(value: unknown): number {
  if (Array.isArray(value)) return value[0] === 0 ? Number(value[1]) : Number.NaN;
  return typeof value === "number" ? value : Number.NaN;
}

function rangeOf(value: unknown): { min: number; max: number } | undefined {
  const min = member(value, "low");
  const max = member(value, "high");
  return typeof min === "number" && typeof max === "number" && min < max ? { min, max } : undefined;
}

/** The text of a LocalizedText; undefined if it is empty. */
function textOf(value: unknown): string | undefined {
  const text = member(value, "text");
  return typeof text === "string" && text !== "" ? text : undefined;
}

/** Time to collect changed variables: changes often come together. */
const gatherMs = 1_000;

/** Describes all variables first, later those that are new or that the server reports as changed. */
export function describing(
  services: Services,
  { clock, log }: Runtime,
  deliver: (descriptions: readonly Description[]) => void,
) {
  const wanted = new Set<Item>();

  /** Describes the added items. Never rejects: values are valid without descriptions. */
  async function round(signal: AbortSignal): Promise<void> {
    const items = [...wanted];
    wanted.clear();
    try {
      const descriptions = await describe(services, items, signal);
      if (descriptions.length > 0) deliver(descriptions);
    } catch (error) {
      if (!signal.aborted) log.warn({ err: error }, "the server does not describe its variables");
    }
  }

  return {
    add(items: Iterable<Item>): void {
      for (const item of items) wanted.add(item);
    },
    round,
    async run(signal: AbortSignal): Promise<never> {
      for (;;) {
        await clock.sleep(gatherMs, signal);
        if (wanted.size > 0) await round(signal);
      }
    },
  };
}
