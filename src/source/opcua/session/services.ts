// The services that are asked of a server in numbers: Read and Browse, in batches no larger than it allows.
import type { BrowseResult, NodeId, ReferenceDescription } from "node-opcua-client";
import { AgentError } from "../../../core/errors.ts";
import type { DataValueLike } from "../types/reading.ts";
import { statusOf } from "./failure.ts";
import type { Link } from "./link.ts";
import type { Ua } from "./stack.ts";

export type { NodeId };

/** Most operations in one call. Shrinks when the server says that it was too much. */
export class BatchSize {
  #size: number;

  /** `limit`: what the server declares; 0: nothing. */
  constructor(limit: number, cap = 500) {
    this.#size = limit > 0 ? Math.min(limit, cap) : cap;
  }

  get size(): number {
    return this.#size;
  }

  /** False: there is nothing left to halve. */
  halve(): boolean {
    if (this.#size <= 1) return false;
    this.#size = Math.ceil(this.#size / 2);
    return true;
  }
}

const tooMuch = ["BadTooManyOperations", "BadEncodingLimitsExceeded", "BadResponseTooLarge", "BadRequestTooLarge"];

/** Whether the server says that fewer operations might do. */
export function isTooMuch(error: unknown): boolean {
  return tooMuch.includes(statusOf(error) ?? "");
}

/** Batches on their way at a time: the server works on one while the next is written. */
const atATime = 2;

/** Calls for all of `items`, a batch at a time, and gives the results in their order. */
export async function inBatches<T, R>(
  items: readonly T[],
  batch: BatchSize,
  call: (items: readonly T[]) => Promise<readonly R[]>,
): Promise<R[]> {
  const parts: (readonly [number, readonly R[]])[] = [];
  const ranges: (readonly [number, number])[] = items.length > 0 ? [[0, items.length]] : [];
  const work = async () => {
    for (let range = ranges.pop(); range; range = ranges.pop()) {
      const from = range[0];
      const to = Math.min(range[1], from + batch.size);
      if (to < range[1]) ranges.push([to, range[1]]);
      try {
        parts.push([from, await answered(items.slice(from, to), call)]);
      } catch (error) {
        if (!isTooMuch(error) || to - from <= 1) throw error;
        if (to - from <= batch.size) batch.halve();
        ranges.push([from, to]);
      }
    }
  };
  await Promise.all(Array.from({ length: atATime }, work));
  return parts.toSorted(([a], [b]) => a - b).flatMap(([, results]) => results);
}

async function answered<T, R>(part: readonly T[], call: (items: readonly T[]) => Promise<readonly R[]>) {
  const answer = await call(part);
  if (answer.length !== part.length)
    throw new AgentError("SOURCE_PROTOCOL", `the server gave ${answer.length} results for ${part.length} operations`);
  return answer;
}

export interface ReadTarget {
  readonly nodeId: NodeId;
  readonly attributeId: number;
}

/** Child of a node, as Browse gives it. */
export interface Child {
  readonly nodeId: NodeId;
  readonly namespace: number;
  readonly name: string;
  readonly variable: boolean;
  /** A property describes its parent, and is no data of its own. */
  readonly property: boolean;
}

const hasProperty = 46;
const hierarchicalReferences = "i=33";

/** The services of one link. */
export class Services {
  readonly #ua: Ua;
  readonly #link: Link;
  readonly #reads: BatchSize;
  readonly #browses: BatchSize;

  constructor(ua: Ua, link: Link, limits: { readonly read: number; readonly browse: number }) {
    this.#ua = ua;
    this.#link = link;
    this.#reads = new BatchSize(limits.read);
    this.#browses = new BatchSize(limits.browse, 200);
  }

  /** One value for each target; what cannot be read has a bad status. */
  read(targets: readonly ReadTarget[], signal: AbortSignal): Promise<DataValueLike[]> {
    const { ReadRequest, ReadResponse, TimestampsToReturn } = this.#ua;
    return inBatches(targets, this.#reads, async (part) => {
      const request = new ReadRequest({
        maxAge: 0,
        timestampsToReturn: TimestampsToReturn.Both,
        nodesToRead: [...part],
      });
      const { results } = await this.#link.call(request, ReadResponse, signal);
      return results ?? [];
    });
  }

  /** Objects and variables below each node. Nodes that cannot be browsed have none. */
  async children(nodes: readonly NodeId[], signal: AbortSignal): Promise<Child[][]> {
    const { BrowseRequest, BrowseResponse, BrowseDirection } = this.#ua;
    return inBatches(nodes, this.#browses, async (part) => {
      const request = new BrowseRequest({
        requestedMaxReferencesPerNode: 0,
        nodesToBrowse: part.map((nodeId) => ({
          nodeId,
          browseDirection: BrowseDirection.Forward,
          referenceTypeId: hierarchicalReferences,
          includeSubtypes: true,
          nodeClassMask: 3,
          resultMask: 63,
        })),
      });
      const { results } = await this.#link.call(request, BrowseResponse, signal);
      const all: Child[][] = [];
      for (const result of results ?? []) all.push(await this.#rest(result, signal));
      return all;
    });
  }

  /** Where the references of this type come from that lead to each node, for nodes on this server. */
  inverse(nodes: readonly NodeId[], referenceTypeId: string, signal: AbortSignal): Promise<NodeId[][]> {
    return this.#related(nodes, referenceTypeId, this.#ua.BrowseDirection.Inverse, signal);
  }

  /** Where the references of this type lead to from each node, for nodes on this server. */
  forward(nodes: readonly NodeId[], referenceTypeId: string, signal: AbortSignal): Promise<NodeId[][]> {
    return this.#related(nodes, referenceTypeId, this.#ua.BrowseDirection.Forward, signal);
  }

  #related(nodes: readonly NodeId[], referenceTypeId: string, browseDirection: number, signal: AbortSignal) {
    const { BrowseRequest, BrowseResponse } = this.#ua;
    return inBatches(nodes, this.#browses, async (part) => {
      const request = new BrowseRequest({
        requestedMaxReferencesPerNode: 0,
        nodesToBrowse: part.map((nodeId) => ({
          nodeId,
          browseDirection,
          referenceTypeId,
          includeSubtypes: false,
          nodeClassMask: 0,
          resultMask: 63,
        })),
      });
      const { results } = await this.#link.call(request, BrowseResponse, signal);
      const all: NodeId[][] = [];
      for (const result of results ?? []) all.push((await this.#rest(result, signal)).map(({ nodeId }) => nodeId));
      return all;
    });
  }

  async #rest(first: BrowseResult, signal: AbortSignal): Promise<Child[]> {
    const { BrowseNextRequest, BrowseNextResponse } = this.#ua;
    const children = this.#convert(first.references);
    let point = first.continuationPoint;
    while (point?.length) {
      const request = new BrowseNextRequest({ continuationPoints: [point], releaseContinuationPoints: false });
      const { results } = await this.#link.call(request, BrowseNextResponse, signal);
      children.push(...this.#convert(results?.[0]?.references ?? null));
      point = results?.[0]?.continuationPoint ?? Buffer.alloc(0);
    }
    return children;
  }

  #convert(references: ReferenceDescription[] | null): Child[] {
    const { NodeClass, NodeId } = this.#ua;
    return (references ?? [])
      .filter(({ nodeId }) => !nodeId.serverIndex)
      .map((reference) => ({
        nodeId: new NodeId(reference.nodeId.identifierType, reference.nodeId.value, reference.nodeId.namespace),
        namespace: reference.browseName.namespaceIndex,
        name: reference.browseName.name ?? "",
        variable: reference.nodeClass === NodeClass.Variable,
        property: reference.referenceTypeId.namespace === 0 && reference.referenceTypeId.value === hasProperty,
      }));
  }
}
