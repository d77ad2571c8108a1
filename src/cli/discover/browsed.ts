// The output of `tagferry browse`: JSON that `init` can read, and tags for a configuration. Pure.

import { stringify } from "yaml";
import { z } from "zod";
import type { BrowsedNode } from "../../core/commissioning.ts";
import { type SecurityMode, securityModes } from "../../lib/security-mode.ts";
import { signalAttributes } from "../../wire/signal-view.ts";
import { visible } from "../terminal/text.ts";

const node = z.object({
  address: z.string(),
  name: z.string(),
  depth: z.int().min(0),
  // An integer beyond the exact range of JSON numbers was printed as a text.
  value: z
    .union([
      z.number(),
      z.boolean(),
      z.string().transform((text) => (/^-?\d{16,20}$/.test(text) ? BigInt(text) : text)),
    ])
    .exactOptional(),
  signal: signalAttributes.partial().default({}),
  tag: z.record(z.string(), z.unknown()),
});
const security = z.object({ mode: z.enum(securityModes) }).optional();
const document = z.object({ url: z.string(), type: z.string(), security, nodes: z.array(node) });

export interface BrowsedDevice {
  readonly url: string;
  readonly type: string;
  /** The mode with which the operator called `browse`. */
  readonly securityMode?: SecurityMode | undefined;
  readonly nodes: readonly BrowsedNode[];
}

/** Undefined: the text is not output of `browse`. */
export function browsedJson(text: string): readonly BrowsedDevice[] | undefined {
  try {
    // Documents begin and end with a brace in the first column.
    return text
      .trim()
      .split(/(?<=^\})\s+(?=^\{)/m)
      .map((part) => document.parse(JSON.parse(part)))
      .map(({ security: asked, ...device }) => ({ ...device, securityMode: asked?.mode }));
  } catch {
    return undefined;
  }
}

/** A register without any information except a value other than 0. */
const plainRegister = /^(?:hr|ir):\d+ [ui]16$/;
/** Beyond this many plain registers of a unit the operator must choose, since each costs time on the bus. */
const mostPlain = 100;

/**
 * `tags:`, or `devices:` for tags of units. Adds a unique Input ID for each tag to `inputs`. Texts are commented out.
 */
export function browsedYaml(nodes: readonly BrowsedNode[], inputs: Set<string> = new Set()): string {
  const units = new Map<number, string[]>();
  const identities = new Map<number, string[]>();
  const plain = new Map<number, number>();
  const lines: string[] = [];
  const path: string[] = [];
  for (const { name, depth, value, signal, tag } of nodes) {
    path.length = Math.min(path.length, depth);
    path[depth] = name;
    if (value === undefined && tag["input"] === undefined && Object.keys(signal).length === 0) continue;
    const { unit, ...own } = tag;
    if (typeof value === "string" && typeof unit === "number" && Object.keys(own).length === 0) {
      // Identification data of a unit does not need polling.
      identities.set(unit, [...(identities.get(unit) ?? []), visible(`# ${name}: ${value}`)]);
      continue;
    }
    const input = unique(typeof own["input"] === "string" ? own["input"] : inputOf(path, tag), inputs);
    // OPC UA nodes describe themselves to the agent.
    const described = "node" in own || Object.keys(signal).length === 0 ? {} : { signal };
    const text = flow({ ...own, input, ...described });
    const line = typeof value === "string" ? `# - ${text}   # a text; needs values: { … }` : `- ${text}`;
    if (typeof unit !== "number") {
      lines.push(`  ${line}`);
      continue;
    }
    const isPlain = typeof own["at"] === "string" && plainRegister.test(own["at"]) && Object.keys(signal).length === 0;
    if (isPlain) plain.set(unit, (plain.get(unit) ?? 0) + 1);
    const tooMany = isPlain && (plain.get(unit) ?? 0) > mostPlain;
    const tagLines = units.get(unit) ?? [];
    tagLines.push(tooMany ? `# ${line}   # ${String(value)}` : line);
    units.set(unit, tagLines);
  }
  if (units.size === 0) return ["tags:", ...lines].join("\n");
  const devices = [...units].flatMap(([unit, tags]) => [
    `  - unit: ${unit}`,
    "    tags:",
    ...[...(identities.get(unit) ?? []), ...tags].map((line) => `      ${line}`),
  ]);
  return ["devices:", ...devices].join("\n");
}

/** The names on the path to a node. For a place in a device: the unit and the name, or the place if it has no name. */
function inputOf(path: readonly (string | undefined)[], { unit, at }: BrowsedNode["tag"]): string {
  if (typeof unit !== "number") return allowed(path.filter((name) => name !== undefined).join("."));
  const name = path.at(-1) ?? "";
  const place = typeof at === "string" ? (at.split(" ")[0] ?? at) : name;
  return allowed(`unit${unit}.${/^(hr|ir|co|di):/.test(name) ? place : name}`);
}

const longestInput = 128;

function allowed(text: string): string {
  return text.replace(/[^a-zA-Z0-9\-_:.#+/]+/g, "_").slice(0, longestInput) || "tag";
}

function unique(wanted: string, taken: Set<string>): string {
  let input = wanted;
  for (let n = 2; taken.has(input); n++) input = `${wanted.slice(0, longestInput - 1 - String(n).length)}.${n}`;
  taken.add(input);
  return input;
}

/** `{ input: …, … }` on one line, the Input ID first. */
function flow({ input, ...rest }: Readonly<Record<string, unknown>>): string {
  // A line break in a name is escaped, so that the text stays on one line.
  const oneLine = { lineWidth: 0, singleQuote: false, doubleQuotedMinMultiLineLength: Number.MAX_SAFE_INTEGER };
  return stringify({ input, ...rest }, { collectionStyle: "flow", ...oneLine }).trimEnd();
}
