// Walks an address space along browse paths, level by level: one call browses many nodes.
import { z } from "zod";
import { readStateFile, writeStateFile } from "../../../lib/files/state-file.ts";
import { type BrowsePathStep, isDeep, stepMatches } from "../config/node-address.ts";
import type { Child, NodeId, Services } from "../session/services.ts";

export interface FoundNode {
  readonly nodeId: NodeId;
  readonly variable: boolean;
  /** Names from the start down to the node. */
  readonly trail: readonly string[];
}

/** Bounds a walk through an endless address space. */
const mostNodes = 100_000;

/** Caches what it has browsed. Create a new one when the address space may have changed. */
export class AddressSpace {
  readonly #services: Services;
  readonly #children = new Map<string, readonly Child[]>();

  constructor(services: Services) {
    this.#services = services;
  }

  /**
   * At most `limit` nodes that the steps lead to from `start`, in the server's order. With a wildcard it finds only
   * variables, and the wildcard matches neither properties nor the Server object.
   */
  async find(
    start: NodeId,
    steps: readonly BrowsePathStep[],
    limit: number,
    signal: AbortSignal,
  ): Promise<FoundNode[]> {
    const wild = steps.some(({ name }) => name.includes("*"));
    const found: FoundNode[] = [];
    const seen = new Set<string>();
    let level: State[] = [{ nodeId: start, variable: false, step: 0, trail: [] }];
    while (level.length > 0 && seen.size < mostNodes) {
      const next: State[] = [];
      for (const state of reached(level, steps, seen)) {
        if (state.step < steps.length) next.push(state);
        else if (found.length < limit && (state.variable || !wild)) found.push(state);
      }
      if (found.length >= limit) break;
      await this.#browse(next, signal);
      level = next.flatMap((state) => this.#descend(state, steps));
    }
    return found;
  }

  async #browse(states: readonly State[], signal: AbortSignal): Promise<void> {
    const nodes = states.map(({ nodeId }) => [nodeId.toString(), nodeId] as const);
    const unknown = new Map(nodes.filter(([key]) => !this.#children.has(key)));
    const answers = await this.#services.children([...unknown.values()], signal);
    for (const [i, key] of [...unknown.keys()].entries()) this.#children.set(key, answers[i] ?? []);
  }

  #descend({ nodeId, step: at, trail }: State, steps: readonly BrowsePathStep[]): State[] {
    const step = steps[at];
    if (!step) return [];
    const wild = step.name.includes("*");
    return (this.#children.get(nodeId.toString()) ?? [])
      .filter((child) => !(wild && (child.property || isServerObject(child))))
      .filter(({ namespace, name }) => stepMatches(step, namespace, name))
      .map((child) => ({ ...child, step: isDeep(step) ? at : at + 1, trail: [...trail, child.name] }));
  }
}

interface State extends FoundNode {
  /** Index of the next step; after the last step, the node is found. */
  readonly step: number;
}

/** Adds the states for which a `**` matches no level. Removes duplicates. */
function reached(level: readonly State[], steps: readonly BrowsePathStep[], seen: Set<string>): State[] {
  const states: State[] = [];
  const visit = (state: State) => {
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

function isServerObject({ nodeId }: Child): boolean {
  return nodeId.namespace === 0 && nodeId.value === 2253;
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
