// Read and Browse, in batches no larger than the server allows.
import type { BrowseDescriptionOptions, BrowseResult, NodeId, ReferenceDescription } from "node-opcua-client";
import { AgentError, isAgentError } from "../../../core/errors.ts";
import { isUnreadable, statusOf, unreadableReason } from "../stack/failure.ts";
import type { DataValueLike } from "../types/reading.ts";
import { builtIn, Unreadable } from "../types/value.ts";
import type { Link } from "./link.ts";

export type { NodeId };

/** Most operations in one call. Shrinks when the server rejects a call as too large. */
export class BatchSize {
  readonly #full: number;
  #size: number;

  /** `limit`: what the server declares; 0 if it declares none. */
  constructor(limit: number, cap = 500) {
    this.#full = limit > 0 ? Math.min(limit, cap) : cap;
    this.#size = this.#full;
  }

  get size(): number {
    return this.#size;
  }

  /** Ends all shrinking, whose cause was a single operation. */
  restore(): void {
    this.#size = this.#full;
  }

  /** Shrinks to half of a call that was too large; default: as large as permitted. False if the size is already 1. */
  halve(length = this.#size): boolean {
    if (this.#size <= 1) return false;
    this.#size = Math.ceil(Math.min(length, this.#size) / 2);
    return true;
  }
}

/** Statuses of a request that the server rejects as a whole, before it does anything. */
const tooMuch = ["BadTooManyOperations", "BadRequestTooLarge"];

/** Whether a smaller batch may succeed. The server may have carried out a request whose answer is unreadable. */
export function isTooMuch(error: unknown, repeatable: boolean): boolean {
  return (repeatable && isUnreadable(error)) || tooMuch.includes(statusOf(error) ?? "");
}

/** Calls in flight: the server works on one while the agent encodes the next. */
const atATime = 2;

/**
 * Calls `ask` batch by batch. The results have the order of `items`. With `repeatable`, a call whose answer is unreadable
 * or has another number of results is divided like one that was too large.
 */
export async function inBatches<T, R>(
  items: readonly T[],
  batch: BatchSize,
  ask: (items: readonly T[]) => Promise<readonly R[]>,
  repeatable = false,
): Promise<R[]> {
  const parts: (readonly [number, readonly R[]])[] = [];
  const ranges: (readonly [number, number])[] = items.length > 0 ? [[0, items.length]] : [];
  const work = async () => {
    for (let range = ranges.pop(); range; range = ranges.pop()) {
      const from = range[0];
      const to = Math.min(range[1], from + batch.size);
      if (to < range[1]) ranges.push([to, range[1]]);
      try {
        const answer = await ask(items.slice(from, to));
        const found = `the server gave ${answer.length} results for ${to - from} operations`;
        if (answer.length !== to - from) throw new AgentError("SOURCE_PROTOCOL", found);
        parts.push([from, answer]);
      } catch (error) {
        const isMiscounted = repeatable && isAgentError(error) && error.code === "SOURCE_PROTOCOL";
        if (!(isMiscounted || isTooMuch(error, repeatable)) || to - from <= 1) throw error;
        if (to - from <= batch.size) batch.halve(to - from);
        ranges.push([from, to]);
      }
    }
  };
  await Promise.all(Array.from({ length: atATime }, work));
  return parts.toSorted(([a], [b]) => a - b).flatMap(([, results]) => results);
}

/** Calls `ask` with each distinct item once. The results have the order of `items`. */
async function distinct<T, R>(
  items: readonly T[],
  keyOf: (item: T) => string,
  ask: (items: readonly T[]) => Promise<readonly R[]>,
): Promise<R[]> {
  const places = new Map<string, number>();
  const asked: T[] = [];
  const placeOf = items.map((item) => {
    const key = keyOf(item);
    const place = places.get(key) ?? asked.push(item) - 1;
    places.set(key, place);
    return place;
  });
  const results = await ask(asked);
  return placeOf.flatMap((place) => results.slice(place, place + 1));
}

/** A number is a NodeId of namespace 0. */
export interface ReadTarget {
  readonly nodeId: NodeId | string | number;
  readonly attributeId: number;
}

/** Attribute ids (OPC 10000-6, A.1). */
export const attributes = {
  displayName: 4,
  description: 5,
  value: 13,
  dataType: 14,
  accessLevel: 17,
  userAccessLevel: 18,
  dataTypeDefinition: 23,
} as const;

/** Reads one attribute of each node; the results have the order of `nodes`. */
export function readValues(
  services: Pick<Services, "read">,
  nodes: readonly ReadTarget["nodeId"][],
  signal: AbortSignal,
  attributeId: number = attributes.value,
): Promise<DataValueLike[]> {
  const targets = nodes.map((nodeId) => ({ nodeId, attributeId }));
  return services.read(targets, signal);
}

function unreadableValue(reason: string): DataValueLike {
  const value = { dataType: builtIn.variant, arrayType: 0, value: new Unreadable(reason) };
  const times = { sourceTimestamp: null, sourcePicoseconds: 0, serverTimestamp: null, serverPicoseconds: 0 };
  return { value, statusCode: { value: 0, name: "Good" }, ...times };
}

export interface Child {
  readonly nodeId: NodeId;
  readonly namespace: number;
  readonly name: string;
  readonly variable: boolean;
  /** A property describes its parent and is not a value of its own. */
  readonly property: boolean;
}

/** Whether a node is shown to people: not a property, and not the Server object, which describes the server. */
export function isOffered({ nodeId, property }: Pick<Child, "nodeId" | "property">): boolean {
  return !property && !(nodeId.namespace === 0 && nodeId.value === 2253);
}

/** Pages in a row without a new node at which a browse ends: some continuation points lead back to the start. */
const mostIdlePages = 20;
const noMorePoints = "BadNoContinuationPoints";
/** Attempts to browse a node alone. A second batch may be using continuation points. */
const mostAttempts = 20;
const hasProperty = 46;
const hierarchicalReferences = "i=33";

export class Services {
  readonly #link: Link;
  readonly #reads: BatchSize;
  readonly #browses: BatchSize;

  constructor(link: Link, limits: { readonly read: number; readonly browse: number }) {
    this.#link = link;
    this.#reads = new BatchSize(limits.read);
    this.#browses = new BatchSize(limits.browse, 200);
  }

  /** One result per target; an unreadable target has a bad status, or the value `Unreadable` if an answer with it fails. */
  read(targets: readonly ReadTarget[], signal: AbortSignal): Promise<DataValueLike[]> {
    const timestampsToReturn = this.#link.ua.TimestampsToReturn.Both;
    const read = async (part: readonly ReadTarget[]) => {
      const nodesToRead = [...part];
      try {
        return (await this.#link.call("Read", { maxAge: 0, timestampsToReturn, nodesToRead }, signal)).results ?? [];
      } catch (error) {
        if (part.length > 1 || !isUnreadable(error)) throw error;
        this.#reads.restore();
        return [unreadableValue(unreadableReason(error))];
      }
    };
    const keyOf = ({ nodeId, attributeId }: ReadTarget) => `${attributeId} ${nodeId.toString()}`;
    return distinct(targets, keyOf, (asked) => inBatches(asked, this.#reads, read, true));
  }

  /** Objects and variables below each node. Empty for nodes that cannot be browsed. */
  children(nodes: readonly (NodeId | string)[], signal: AbortSignal): Promise<Child[][]> {
    const { Forward } = this.#link.ua.BrowseDirection;
    const how = { referenceTypeId: hierarchicalReferences, includeSubtypes: true, nodeClassMask: 3 };
    return this.#browse(nodes, { ...how, browseDirection: Forward }, signal);
  }

  /** Nodes of this server that references of the given type connect with each of `nodes`. */
  async related(
    nodes: readonly (NodeId | string)[],
    direction: "Forward" | "Inverse",
    referenceTypeId: string,
    signal: AbortSignal,
  ): Promise<NodeId[][]> {
    const browseDirection = this.#link.ua.BrowseDirection[direction];
    const how = { referenceTypeId, browseDirection, includeSubtypes: false, nodeClassMask: 0 };
    const found = await this.#browse(nodes, how, signal);
    return found.map((all) => all.map(({ nodeId }) => nodeId));
  }

  #browse(nodes: readonly (NodeId | string)[], how: BrowseDescriptionOptions, signal: AbortSignal): Promise<Child[][]> {
    const link = this.#link;
    const rest = async (first: BrowseResult): Promise<Child[]> => {
      const children = new Map<string, Child>();
      let idlePages = 0;
      for (let result: BrowseResult | undefined = first; result; ) {
        const before = children.size;
        for (const each of result.references ?? [])
          if (!each.nodeId.serverIndex)
            children.set(`${String(each.nodeId)} ${String(each.referenceTypeId)}`, this.#child(each));
        const point: Buffer = result.continuationPoint;
        idlePages = children.size > before ? 0 : idlePages + 1;
        if (!point?.length || idlePages >= mostIdlePages) break;
        const fields = { continuationPoints: [point], releaseContinuationPoints: false };
        result = (await link.call("BrowseNext", fields, signal)).results?.[0];
      }
      return [...children.values()];
    };
    const ask = async (part: readonly (NodeId | string)[]) => {
      const nodesToBrowse = part.map((nodeId) => ({ ...how, nodeId, resultMask: 63 }));
      return (await link.call("Browse", { requestedMaxReferencesPerNode: 0, nodesToBrowse }, signal)).results ?? [];
    };
    const browse = async (part: readonly (NodeId | string)[]) => {
      const results = await ask(part);
      const all: Child[][] = [];
      for (const result of results) all.push(await rest(result));
      // The server had no more continuation points, which are used up by now.
      for (const [i, { statusCode }] of results.entries())
        for (let { name } = statusCode, attempt = 1; name === noMorePoints && attempt <= mostAttempts; attempt++) {
          const [result] = await ask(part.slice(i, i + 1));
          name = result?.statusCode.name ?? "";
          if (result) all[i] = await rest(result);
        }
      return all;
    };
    return distinct(nodes, String, (asked) => inBatches(asked, this.#browses, browse, true));
  }

  readonly #child = ({ nodeId, browseName, nodeClass, referenceTypeId }: ReferenceDescription): Child => ({
    nodeId: new this.#link.ua.NodeId(nodeId.identifierType, nodeId.value, nodeId.namespace),
    namespace: browseName.namespaceIndex,
    name: browseName.name ?? "",
    variable: nodeClass === this.#link.ua.NodeClass.Variable,
    property: referenceTypeId.namespace === 0 && referenceTypeId.value === hasProperty,
  });
}
