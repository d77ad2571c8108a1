// From configured tags to the nodes of this server that hold their values: NodeIds, browse paths and browse patterns.
import type { Captures, DriverTag, TagId } from "../../../core/source.ts";
import { localNodeId, type NodeAddress, numericNamespaces, parsePath, portableNodeId } from "../config/node-address.ts";
import type { Deadband, opcuaTag } from "../config/options.ts";
import type { NodeId, Services } from "../session/services.ts";
import type { Ua } from "../session/stack.ts";
import { ClockCheck, type ReadingOf } from "../types/reading.ts";
import type { FieldStep } from "../types/structure.ts";
import { AddressSpace, type FoundNode } from "./address-space.ts";
import type { StructureTypes } from "./structure-types.ts";

export type Tag = DriverTag<typeof opcuaTag>;

/** A node to be monitored for a tag. */
export interface Item {
  readonly tag: TagId;
  readonly captures: Captures;
  readonly address: string;
  readonly nodeId: NodeId;
  /** Sampling interval in milliseconds. */
  readonly every: number;
  readonly clockCheck: ClockCheck;
  /** Element of an array or matrix, from 0, a number for each dimension; undefined: the value is no array. */
  readonly index: readonly number[] | undefined;
  /** The way to a field of a structure; undefined: the value itself. */
  readonly field?: readonly FieldStep[] | undefined;
  /** Reads the field. */
  readonly part?: ReadingOf["part"];
  /** What the server shall keep to itself. */
  readonly deadband?: Deadband | undefined;
  /** What makes the server notify of it. */
  readonly trigger?: Tag["trigger"];
}

/** A tag without a node, and why. */
export interface Unresolved {
  readonly tag: TagId;
  readonly address: string;
  readonly reason: string;
}

export interface Resolution {
  readonly items: Item[];
  readonly unresolved: Unresolved[];
  /** Tags whose pattern found more than their `limit`. */
  readonly cut: TagId[];
}

export interface Resolver {
  readonly ua: Ua;
  readonly services: Services;
  readonly structures: StructureTypes;
  readonly namespaces: readonly string[];
  /** Index → URI that it stood for when it was first used. */
  readonly known: ReadonlyMap<number, string>;
}

const noCaptures: Captures = {};
const defaultLimit = 1_000;

/** Finds the nodes of `tags`, given with their `TagId`. Rejects with `SOURCE_*` when the server cannot be asked. */
export async function resolveTags(
  tags: readonly (readonly [TagId, Tag])[],
  resolver: Resolver,
  signal: AbortSignal,
): Promise<Resolution> {
  const result: Resolution = { items: [], unresolved: [], cut: [] };
  const space = new AddressSpace(resolver.services);
  for (const [tag, config] of tags) {
    const moved = movedNamespace(config, resolver);
    if (moved !== undefined)
      result.unresolved.push({ tag, address: config.node ?? config.path ?? config.browse ?? "", reason: moved });
    else if (config.node !== undefined) byNodeId(tag, config, config.node, resolver, result);
    else await byPath(tag, config, space, resolver, result, signal);
  }
  return result;
}

/** What is to be said where an index that the address names stands for another namespace than when it was first used. */
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

function byNodeId(tag: TagId, config: Tag, node: string, resolver: Resolver, result: Resolution): void {
  const { ua, namespaces } = resolver;
  const fail = (reason: string) => result.unresolved.push({ tag, address: node, reason });
  const text = localNodeId(node, namespaces);
  if (text === undefined) {
    fail(`the server has no namespace ${/^nsu=([^;]+)/.exec(node)?.[1]}`);
    return;
  }
  try {
    const nodeId = ua.coerceNodeId(text);
    result.items.push(itemOf(tag, config, resolver, { nodeId, captures: noCaptures, address: node }));
  } catch {
    fail("that is no NodeId");
  }
}

async function byPath(
  tag: TagId,
  config: Tag,
  space: AddressSpace,
  resolver: Resolver,
  result: Resolution,
  signal: AbortSignal,
): Promise<void> {
  const pattern = config.browse !== undefined;
  const address = config.browse ?? config.path ?? "";
  const { ua } = resolver;
  const steps = parsePath(address);
  const limit = config.limit ?? defaultLimit;
  // One more than allowed tells whether there are more.
  const found = await space.find(ua.makeNodeId(85, 0), steps, pattern ? limit + 1 : 2, signal);
  const variables = found.filter(({ variable }) => variable);
  const fail = (reason: string) => result.unresolved.push({ tag, address, reason });
  if (found.length === 0) fail("BadNoMatch: the server has nothing there");
  else if (variables.length === 0) fail("there is no variable");
  else if (!pattern && found.length > 1) fail("more than one node is called so; write the namespaces, as in 2:Oven");
  else {
    if (variables.length > limit) result.cut.push(tag);
    const fixed = steps.findIndex(({ name }) => name.includes("*"));
    const addresses = addressesOf(variables, resolver);
    for (const [i, { nodeId, trail }] of variables.slice(0, limit).entries()) {
      const captures = pattern
        ? { name: trail.at(-1) ?? "", path: trail.slice(Math.max(0, fixed)).join("/") }
        : noCaptures;
      const where = pattern ? (addresses[i] ?? "") : address;
      result.items.push(itemOf(tag, config, resolver, { nodeId, captures, address: where }));
    }
  }
}

/**
 * The browse path of each variable, the same for as long as the server has it there. Where several have one path, since
 * their names differ in the namespace alone, the NodeId follows.
 */
function addressesOf(found: readonly FoundNode[], { namespaces }: Resolver): readonly string[] {
  const paths = found.map(({ trail }) => trail.map((name) => name.replaceAll(/[&/]/g, "&$&")).join("/"));
  const paired = Map.groupBy(paths, (path) => path);
  return paths.map((path, i) => {
    const nodeId = found[i]?.nodeId.toString() ?? "";
    return (paired.get(path)?.length ?? 1) === 1 ? path : `${path} (${portableNodeId(nodeId, namespaces)})`;
  });
}

function itemOf(
  tag: TagId,
  { every, index, field, deadband, trigger }: Tag,
  { structures }: Resolver,
  where: Pick<Item, "nodeId" | "captures" | "address">,
): Item {
  const place = { nodeId: where.nodeId, index, field };
  const part: Item["part"] = field && ((variant) => structures.convert(variant, place));
  return { tag, ...where, every, clockCheck: new ClockCheck(), index, field, part, deadband, trigger };
}
