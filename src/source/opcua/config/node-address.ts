// Parses NodeIds and browse paths of the configuration. Pure.
import type { Ambiguity, TagOverlap } from "../../../core/driver.ts";
import type { TagId } from "../../../core/source.ts";

/** `2:Oven`, or `Oven` in any namespace. `*` matches any characters of a name, `**` any number of levels. */
export interface BrowsePathStep {
  readonly namespace: number | undefined;
  readonly name: string;
}

/**
 * Replaces a namespace URI by the server's current index: `nsu=urn:plc;s=Temp` → `ns=3;s=Temp`. Undefined if the server
 * lacks the namespace. In a URI, `%3B` is a semicolon and `%25` a per cent sign.
 */
export function localNodeId(text: string, namespaces: readonly string[]): string | undefined {
  const match = /^nsu=([^;]+);([\s\S]*)$/.exec(text);
  if (!match) return text;
  const index = namespaces.indexOf((match[1] ?? "").replaceAll(/%3B/gi, ";").replaceAll("%25", "%"));
  return index < 0 ? undefined : `ns=${index};${match[2]}`;
}

/** Inverse of `localNodeId`: replaces the index by the URI, which stays valid after a server restart. */
export function portableNodeId(text: string, namespaces: readonly string[]): string {
  const match = /^ns=(\d+);([\s\S]*)$/.exec(text);
  const uri = match && namespaces[Number(match[1])];
  return match && uri && match[1] !== "0"
    ? `nsu=${uri.replaceAll("%", "%25").replaceAll(";", "%3B")};${match[2]}`
    : text;
}

/** Namespace indexes in an address that may change their meaning. Index 0, the standard's, never does. */
export function numericNamespaces({ node, path, browse }: NodeAddress): number[] {
  const steps = parsePath(path ?? browse ?? "").map(({ namespace }) => namespace);
  const all = [Number(/^ns=(\d+);/.exec(node ?? "")?.[1] ?? 0), ...steps];
  return [...new Set(all.flatMap((index) => index || []))];
}

/** Address of a tag as configured; exactly one field is set. */
export interface NodeAddress {
  readonly node?: string | undefined;
  readonly path?: string | undefined;
  readonly browse?: string | undefined;
}

/** Steps from Objects. In a name, `&/` is a slash, `&:` a colon, `&&` an ampersand (OPC 10000-4, A.2). */
export function parsePath(text: string): BrowsePathStep[] {
  const steps = [...text.matchAll(/(?:&[\s\S]|[^/&])+/g)].map(([part]) => parseStep(part));
  const first = steps[0];
  return first?.name === "Objects" && (first.namespace ?? 0) === 0 && steps.length > 1 ? steps.slice(1) : steps;
}

function parseStep(text: string): BrowsePathStep {
  const match = /^(\d+):([\s\S]+)$/.exec(text);
  const name = (match?.[2] ?? text).replaceAll(/&([\s\S])/g, "$1");
  return { namespace: match ? Number(match[1]) : undefined, name };
}

/** Whether a name matches a step, in which `*` stands for any characters. */
export function stepMatches(step: BrowsePathStep, namespace: number, name: string): boolean {
  if (step.namespace !== undefined && step.namespace !== namespace) return false;
  if (!step.name.includes("*")) return step.name === name;
  const pattern = step.name.split("*").map((part) => part.replaceAll(/[\\^$.*+?()[\]{}|]/g, "\\$&"));
  return new RegExp(`^${pattern.join(".*")}$`, "su").test(name);
}

export function isDeep(step: BrowsePathStep): boolean {
  return step.name === "**";
}

/** `names`: the captures that the Input ID uses. */
export function browseAmbiguity({ browse }: NodeAddress, names: readonly string[]): Ambiguity | undefined {
  if (browse === undefined || names.includes("path")) return undefined;
  const steps = parsePath(browse);
  const wild = steps.findIndex(({ name }) => name.includes("*"));
  const last = steps.at(-1);
  if (wild < 0 || last === undefined) return undefined;
  // Variables of one folder have different names.
  if (names.includes("name") && wild === steps.length - 1 && !isDeep(last)) return undefined;
  const which = names.includes("name") ? "have the same name" : "come to this Input ID";
  return {
    message: `several variables below ${browse} may ${which}; the first one feeds an Input ID, values of the others are refused`,
    remedy: "use {path} in `input`, which differs for each of them; or write `shared: true`",
  };
}

/** Tags with the same browse pattern. Different patterns may still find the same variables; only the server knows. */
export function* browseOverlaps(
  tags: readonly (NodeAddress & { readonly index?: unknown; readonly field?: unknown })[],
): Generator<TagOverlap> {
  const firsts = new Map<string, TagId>();
  const example = { name: "Qz", path: "Qy/Qz" };
  for (const [i, { browse, index, field }] of tags.entries()) {
    if (browse === undefined) continue;
    const place = JSON.stringify([browse, index, field]);
    const tag = i as TagId; // a TagId is the index of its tag
    const first = firsts.get(place) ?? tag;
    firsts.set(place, first);
    if (first !== tag)
      yield { tags: [first, tag], captures: [example, example], what: `each variable that ${browse} finds` };
  }
}
