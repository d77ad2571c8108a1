// Resolves configured tags (NodeId, browse path or pattern) to nodes of this server.
import type { DriverTag } from "../../../core/driver.ts";
import type { Captures, TagId } from "../../../core/source.ts";
import { localNodeId, type NodeAddress, numericNamespaces, parsePath, portableNodeId } from "../config/node-address.ts";
import type { Deadband, opcuaTag } from "../config/options.ts";
import type { NodeId, Services } from "../session/services.ts";
import type { Ua } from "../stack/stack.ts";
import { ClockCheck, type ReadingOf } from "../types/reading.ts";
import type { FieldStep } from "../types/structure.ts";
import { AddressSpace, type FoundNode } from "./address-space.ts";
import type { StructureTypes } from "./structure-types.ts";

export type Tag = DriverTag<typeof opcuaTag>;

export interface Item extends ReadingOf {
  readonly nodeId: NodeId;
  /** Sampling interval in milliseconds. */
  readonly every: number;
  /** Element of an array or matrix: one index from 0 per dimension. Undefined for a scalar. */
  readonly index: readonly number[] | undefined;
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

export interface Resolution {
  readonly items: Item[];
  readonly unresolved: Unresolved[];
  /** Tags whose pattern found more nodes than their `limit`. */
  readonly cut: TagId[];
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

/** Rejects with `SOURCE_*` if the server cannot be browsed. */
export async function resolveTags(
  tags: readonly (readonly [TagId, Tag])[],
  resolver: Resolver,
  signal: AbortSignal,
): Promise<Resolution> {
  const result: Resolution = { items: [], unresolved: [], cut: [] };
  const space = new AddressSpace(resolver.services);
  for (const [tag, config] of tags) {
    const address = config.node ?? config.path ?? config.browse ?? "";
    const found = movedNamespace(config, resolver) ?? (await nodesOf(config, address, space, resolver, signal));
    if (typeof found === "string") result.unresolved.push({ tag, address, reason: found });
    else {
      const limit = config.limit ?? defaultLimit;
      if (found.length > limit) result.cut.push(tag);
      for (const place of found.slice(0, limit)) result.items.push(itemOf(tag, config, resolver, place));
    }
  }
  return result;
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
  space: AddressSpace,
  resolver: Resolver,
  signal: AbortSignal,
): Promise<readonly Place[] | string> {
  const { ua, namespaces } = resolver;
  if (config.node !== undefined) {
    const text = localNodeId(address, namespaces);
    if (text === undefined) return `the server has no namespace ${/^nsu=([^;]+)/.exec(address)?.[1]}`;
    try {
      return [{ nodeId: ua.coerceNodeId(text), captures: noCaptures, address }];
    } catch {
      return "that is no NodeId";
    }
  }
  const pattern = config.browse !== undefined;
  const steps = parsePath(address);
  // One more than the limit shows whether there are more.
  const most = pattern ? (config.limit ?? defaultLimit) + 1 : 2;
  const found = await space.find(ua.makeNodeId(85, 0), steps, most, signal);
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
