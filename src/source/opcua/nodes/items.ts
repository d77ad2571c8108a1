// Resolves configured tags (NodeId, browse path or pattern) to nodes of this server. Walks browse paths level by level:
// one call browses many nodes.
import { z } from "zod";
import type { DriverTag } from "../../../core/driver.ts";
import type { Captures, TagId } from "../../../core/source.ts";
import { readStateFile, writeStateFile } from "../../../lib/files/state-file.ts";
import { attempt } from "../../../lib/flow/attempt.ts";
import {
  type BrowsePathStep,
  isDeep,
  localNodeId,
  type NodeAddress,
  numericNamespaces,
  parsePath,
  portableNodeId,
  stepMatches,
} from "../config/node-address.ts";
import type { Deadband, opcuaTag } from "../config/options.ts";
import { type Child, isOffered, type NodeId, type Services } from "../session/services.ts";
import type { Ua } from "../stack/stack.ts";
import { ClockCheck, type ReadingOf } from "../types/reading.ts";
import type { FieldStep } from "../types/structure.ts";
import type { StructureTypes } from "./structure-types.ts";

export type Tag = DriverTag<typeof opcuaTag>;

export interface Item extends ReadingOf {
  readonly nodeId: NodeId;
  /** Sampling interval in milliseconds. */
  readonly every: number;
  /** Path to a field of a structure. Undefined for the whole value. */
  readonly field?: readonly FieldStep[] | undefined;
  /** The smallest change that the server reports. */
  readonly deadband?: Deadband | undefined;
  /** The kind of change that triggers a notification. */
  readonly trigger?: Tag["trigger"];
}

/** The element or field of the node that an item takes. Empty for the whole value. */
export function partOf({ index, field }: Pick<Item, "index" | "field">): string {
  const element = index === undefined ? "" : `[${index.join()}]`;
  return field === undefined ? element : `${element}.${JSON.stringify(field)}`;
}

export interface Unresolved {
  readonly tag: TagId;
  readonly address: string;
  readonly reason: string;
}

export interface Resolver {
  readonly ua: Ua;
  readonly services: Services;
  readonly structures: StructureTypes;
  /** Grows, see `addNamespaces`. */
  readonly namespaces: string[];
  /** Index → namespace URI when the index was first used. */
  readonly known: ReadonlyMap<number, string>;
}

const noCaptures: Captures = {};
const defaultLimit = 1_000;

/**
 * `cut`: tags whose pattern found more nodes than their `limit`. Rejects with `SOURCE_*` if the server cannot be
 * browsed.
 */
export async function resolveTags(
  tags: readonly (readonly [TagId, Tag])[],
  resolver: Resolver,
  signal: AbortSignal,
): Promise<{ items: Item[]; unresolved: Unresolved[]; cut: TagId[] }> {
  const items: Item[] = [];
  const unresolved: Unresolved[] = [];
  const cut: TagId[] = [];
  const find = nodeFinder(resolver.services);
  for (const [tag, config] of tags) {
    const address = config.node ?? config.path ?? config.browse ?? "";
    const found = movedNamespace(config, resolver) ?? (await nodesOf(config, address, find, resolver, signal));
    if (typeof found === "string") unresolved.push({ tag, address, reason: found });
    else {
      const limit = config.limit ?? defaultLimit;
      if (found.length > limit) cut.push(tag);
      for (const place of found.slice(0, limit)) items.push(itemOf(tag, config, resolver, place));
    }
  }
  return { items, unresolved, cut };
}

/** The reason if an index in the address has changed its namespace since its first use. */
function movedNamespace(address: NodeAddress, { namespaces, known }: Resolver): string | undefined {
  for (const index of numericNamespaces(address)) {
    const before = known.get(index);
    if (before === undefined || before === namespaces[index]) continue;
    const name = address.node === undefined ? `${index}:` : `ns=${index}`;
    const write = address.node === undefined ? `the names without ${index}:, or node: ` : "";
    return `namespace changed: ${name} was ${before}, now it is ${namespaces[index] ?? "none"}; write ${write}nsu=${before};…`;
  }
  return undefined;
}

type Place = Pick<Item, "nodeId" | "captures" | "address">;

/** The nodes of a tag, at most one more than its limit, or the reason why there are none. */
async function nodesOf(
  config: Tag,
  address: string,
  find: ReturnType<typeof nodeFinder>,
  resolver: Resolver,
  signal: AbortSignal,
): Promise<readonly Place[] | string> {
  const { ua, namespaces } = resolver;
  if (config.node !== undefined) {
    const text = localNodeId(address, namespaces);
    if (text === undefined) return `the server has no namespace ${/^nsu=([^;]+)/.exec(address)?.[1]}`;
    const nodeId = attempt(() => ua.coerceNodeId(text));
    return nodeId ? [{ nodeId, captures: noCaptures, address }] : "that is no NodeId";
  }
  const pattern = config.browse !== undefined;
  const steps = parsePath(address);
  // One more than the limit shows whether there are more.
  const most = pattern ? (config.limit ?? defaultLimit) + 1 : 2;
  const found = await find(ua.makeNodeId(85, 0), steps, most, signal);
  const variables = found.filter(({ variable }) => variable);
  if (found.length === 0) return "BadNoMatch: the server has nothing there";
  if (variables.length === 0) return "there is no variable";
  if (!pattern && found.length > 1) return "more than one node is called so; write the namespaces, as in 2:Oven";
  const fixed = steps.findIndex(({ name }) => name.includes("*"));
  const addresses = pattern ? addressesOf(variables, resolver) : [address];
  return variables.map(({ nodeId, trail }, i) => {
    const path = trail.slice(Math.max(0, fixed)).join("/");
    const captures = pattern ? { name: trail.at(-1) ?? "", path } : noCaptures;
    return { nodeId, captures, address: addresses[i] ?? "" };
  });
}

/** The browse path of each variable. Where several share one path, differing only by namespace, the NodeId follows. */
function addressesOf(found: readonly FoundNode[], { namespaces }: Resolver): readonly string[] {
  const paths = found.map(({ trail }) => trail.map((name) => name.replaceAll(/[&/]/g, "&$&")).join("/"));
  const paired = Map.groupBy(paths, (path) => path);
  return paths.map((path, i) => {
    const nodeId = found[i]?.nodeId.toString() ?? "";
    return (paired.get(path)?.length ?? 1) === 1 ? path : `${path} (${portableNodeId(nodeId, namespaces)})`;
  });
}

function itemOf(tag: TagId, config: Tag, { structures }: Resolver, where: Place): Item {
  const { every, index, field, deadband, trigger } = config;
  const place = { nodeId: where.nodeId, index, field };
  const part: Item["part"] = field && ((variant) => structures.convert(variant, place));
  return { tag, ...where, every, clockCheck: new ClockCheck(), index, field, part, deadband, trigger };
}

interface FoundNode {
  readonly nodeId: NodeId;
  readonly variable: boolean;
  /** Names from the start down to the node. */
  readonly trail: readonly string[];
  /** Index of the next step; after the last step, the node is found. */
  readonly step: number;
}

/** Bounds a walk through an endless address space. */
const mostNodes = 100_000;

/** Finds nodes by path. Caches what it has browsed: create a new one when the address space may have changed. */
function nodeFinder(services: Services) {
  const children = new Map<string, readonly Child[]>();

  async function browse(states: readonly FoundNode[], signal: AbortSignal): Promise<void> {
    const unknown = states.map(({ nodeId }) => nodeId).filter((nodeId) => !children.has(nodeId.toString()));
    const answers = await services.children(unknown, signal);
    for (const [i, nodeId] of unknown.entries()) children.set(nodeId.toString(), answers[i] ?? []);
  }

  function descend({ nodeId, step: at, trail }: FoundNode, steps: readonly BrowsePathStep[]): FoundNode[] {
    const step = steps[at];
    if (!step) return [];
    const wild = step.name.includes("*");
    return (children.get(nodeId.toString()) ?? [])
      .filter((child) => !wild || isOffered(child))
      .filter(({ namespace, name }) => stepMatches(step, namespace, name))
      .map((child) => ({ ...child, step: isDeep(step) ? at : at + 1, trail: [...trail, child.name] }));
  }

  /**
   * At most `limit` nodes that the steps lead to from `start`, in the server's order. With a wildcard it finds only
   * variables, and the wildcard matches neither properties nor the Server object.
   */
  return async (start: NodeId, steps: readonly BrowsePathStep[], limit: number, signal: AbortSignal) => {
    const wild = steps.some(({ name }) => name.includes("*"));
    const found: FoundNode[] = [];
    const seen = new Set<string>();
    let level: FoundNode[] = [{ nodeId: start, variable: false, step: 0, trail: [] }];
    while (level.length > 0 && seen.size < mostNodes) {
      const next: FoundNode[] = [];
      for (const state of reached(level, steps, seen)) {
        if (state.step < steps.length) next.push(state);
        else if (found.length < limit && (state.variable || !wild)) found.push(state);
      }
      if (found.length >= limit) break;
      await browse(next, signal);
      level = next.flatMap((state) => descend(state, steps));
    }
    return found;
  };
}

/** Adds the states for which a `**` matches no level. Removes duplicates. */
function reached(level: readonly FoundNode[], steps: readonly BrowsePathStep[], seen: Set<string>): FoundNode[] {
  const states: FoundNode[] = [];
  const visit = (state: FoundNode) => {
    const key = `${state.step} ${state.nodeId.toString()}`;
    if (seen.has(key)) return;
    seen.add(key);
    states.push(state);
    const step = steps[state.step];
    if (step && isDeep(step)) visit({ ...state, step: state.step + 1 });
  };
  for (const state of level) visit(state);
  return states;
}

const content = z.record(z.string().regex(/^\d+$/), z.string());

/**
 * Stores the namespace URI of each index when a tag first uses it, and returns all known ones. If an index changes its
 * meaning, a tag must not read another variable. Rejects on a disk error.
 */
export async function rememberNamespaces(
  path: string,
  used: readonly number[],
  namespaces: readonly string[],
): Promise<ReadonlyMap<number, string>> {
  const stored = await readStateFile(path, content, (error) => {
    throw error;
  });
  const known = new Map(Object.entries(stored ?? {}).map(([index, uri]) => [Number(index), uri]));
  const fresh = used.filter((index) => !known.has(index) && namespaces[index] !== undefined);
  if (fresh.length === 0) return known;
  for (const index of fresh) known.set(index, namespaces[index] ?? "");
  await writeStateFile(path, Object.fromEntries(known));
  return known;
}
