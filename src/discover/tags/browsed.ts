// What browsing found: the JSON that `tagferry browse --json` prints, read; and its tags as YAML for a configuration. Pure.
import { Document, visit } from "yaml";
import { z } from "zod";
import type { BrowsedNode } from "../../core/commissioning.ts";
import { attempt } from "../../lib/flow/attempt.ts";
import { type SecurityMode, securityModes } from "../../lib/text/security-mode.ts";
import { visible } from "../../lib/text/visible.ts";
import { signalAttributes } from "../../wire/signal-view.ts";
import { uniqueInput, usualInput } from "./input-names.ts";

/** A node as JSON carries it. */
export const browsedNode = z.object({
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
const document = z.object({ url: z.string(), type: z.string(), security, nodes: z.array(browsedNode) });

export interface BrowsedDevice {
  readonly url: string;
  readonly type: string;
  /** The mode with which the operator called `browse`. */
  readonly securityMode?: SecurityMode | undefined;
  readonly nodes: readonly BrowsedNode[];
}

/** Undefined: the text is not output of `browse`. */
export function browsedJson(text: string): readonly BrowsedDevice[] | undefined {
  // Documents begin and end with a brace in the first column.
  const parts = text.trim().split(/(?<=^\})\s+(?=^\{)/m);
  const devices = attempt(() => parts.map((part) => document.parse(JSON.parse(part))));
  return devices?.map(({ security: asked, ...device }) => ({ ...device, securityMode: asked?.mode }));
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
    // Levels that the device did not list have no name.
    const names = path.filter((each) => each !== undefined);
    const input = uniqueInput(usualInput({ path: names, tag }), inputs);
    const text = tagEntry({ tag, signal }, input);
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
  const devices = [...units].flatMap(([unit, tags]) => deviceLines(unit, [...(identities.get(unit) ?? []), ...tags]));
  return ["devices:", ...devices.map((line) => `  ${line}`)].join("\n");
}

/** An entry of `devices` with these lines in its `tags`. */
export function deviceLines(unit: number, tags: readonly string[]): readonly string[] {
  return [`- unit: ${unit}`, "  tags:", ...tags.map((line) => `    ${line}`)];
}

/** `{ input: …, … }` on one line, the Input ID first, without the unit, which stands in `devices`. */
export function tagEntry({ tag, signal }: Pick<BrowsedNode, "tag" | "signal">, input: string): string {
  const { unit: _unit, input: _proposed, ...own } = tag;
  // OPC UA nodes describe themselves to the agent.
  const described = "node" in own || Object.keys(signal).length === 0 ? {} : { signal };
  const entry = new Document({ input, ...own, ...described });
  visit(entry, {
    Scalar(_, scalar) {
      // A line break or control character in a name is escaped, so that the text stays on one line.
      if (typeof scalar.value === "string" && /\p{Cc}/u.test(scalar.value)) scalar.type = "QUOTE_DOUBLE";
    },
  });
  const oneLine = { lineWidth: 0, singleQuote: false, doubleQuotedMinMultiLineLength: Number.MAX_SAFE_INTEGER };
  const text = entry.toString({ collectionStyle: "flow", ...oneLine }).trimEnd();
  return literal(text);
}

/** What a device calls itself, or a person types, is no reference to a file or a variable of the agent. */
export function literal(text: string): string {
  return text.replaceAll("${", () => "$${");
}
