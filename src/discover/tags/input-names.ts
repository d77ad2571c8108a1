// Input IDs for what browsing found: the usual one, or one made by a template. Pure.
import type { BrowsedNode } from "../../core/commissioning.ts";

export const longestInput = 128;

/** What an Input ID is made of. `path`: the names from the top of the device down to the node. */
export interface NamedPlace {
  readonly path: readonly string[];
  readonly address: string;
  readonly tag: BrowsedNode["tag"];
}

/** The names that a template may have in braces, each with what it stands for. */
export const templateNames = {
  path: "the names down to the tag, joined by dots",
  name: "the last of them",
  parent: "the one before it",
  source: "the name of the source",
  address: "the address at the device",
  unit: "the unit of a Modbus device",
} as const;

/** The Input ID that the driver proposes, or the names on the path. For a place in a device: the unit and the name, or the place if it has no name. */
export function usualInput(place: Pick<NamedPlace, "path" | "tag">): string {
  const { unit, input } = place.tag;
  if (typeof input === "string") return input;
  return allowed(typeof unit === "number" ? `unit${unit}.${nameOf(place)}` : place.path.join("."));
}

/** The last name of the path. A register without a name is called by its place: `hr:0`, not `hr:0 (40001)`. */
function nameOf({ path, tag: { unit, at } }: Pick<NamedPlace, "path" | "tag">): string {
  const name = path.at(-1) ?? "";
  const isPlace = typeof unit === "number" && typeof at === "string" && /^(hr|ir|co|di):/.test(name);
  return isPlace ? (at.split(" ")[0] ?? at) : name;
}

/** `template` with the names in braces replaced. Unknown names stay, as captures do. */
export function inputFrom(template: string, place: NamedPlace & { readonly source: string }): string {
  const { path, address, tag, source } = place;
  const parts: Readonly<Record<keyof typeof templateNames, () => string>> = {
    path: () => usualInput(place),
    name: () => allowed(nameOf(place)),
    parent: () => allowed(path.at(-2) ?? source),
    source: () => source,
    address: () => allowed(address),
    unit: () => (typeof tag["unit"] === "number" ? String(tag["unit"]) : ""),
  };
  const filled = template.replace(/\{(\w+)\}|[^{}]+/g, (whole, name: string | undefined) => {
    if (name === undefined) return allowed(whole);
    return Object.hasOwn(parts, name) ? parts[name as keyof typeof parts]() : whole;
  });
  return filled.slice(0, longestInput);
}

function allowed(text: string): string {
  return text.replace(/[^a-zA-Z0-9\-_:.#+/]+/g, "_").slice(0, longestInput) || "tag";
}

/** `wanted`, with a number if it is taken. Adds it to `taken`. */
export function uniqueInput(wanted: string, taken: Set<string>): string {
  let input = wanted;
  for (let n = 2; taken.has(input); n++) input = `${wanted.slice(0, longestInput - 1 - String(n).length)}.${n}`;
  taken.add(input);
  return input;
}
