// Browses a server branch by branch, as a person opens them, with current values.
import type { BrowseTarget, ExploredList, ExploredNode, ExploreQuery, Explorer } from "../../../core/commissioning.ts";
import { AgentError } from "../../../core/errors.ts";
import type { Runtime } from "../../../core/runtime.ts";
import { portableNodeId } from "../config/node-address.ts";
import { type Child, type NodeId, readValues, type Services } from "../session/services.ts";
import { convert } from "../types/value.ts";
import { factsOf, isOffered, mostNodes, objects, openBrowser } from "./browse.ts";

/** A node that was listed. */
interface KnownNode {
  readonly nodeId: NodeId;
  readonly path: readonly string[];
}

/** The session is temporary and ends with the explorer. Rejects like `browseOpcua`. */
export async function exploreOpcua(target: BrowseTarget, runtime: Runtime, signal: AbortSignal): Promise<Explorer> {
  const { services, namespaces, resources } = await openBrowser(target, runtime, signal);
  return new OpcuaExplorer(services, namespaces, resources);
}

class OpcuaExplorer implements Explorer {
  readonly tree = true;
  readonly #services: Services;
  readonly #namespaces: readonly string[];
  readonly #resources: AsyncDisposableStack;
  readonly #known = new Map<string, KnownNode>();
  /** Children of the branch that was listed last, so that paging and searching in it ask the server once. */
  #last: { readonly under: string | undefined; readonly children: readonly Child[] } | undefined;

  constructor(services: Services, namespaces: readonly string[], resources: AsyncDisposableStack) {
    this.#services = services;
    this.#namespaces = namespaces;
    this.#resources = resources;
  }

  async list({ under, search, first, count }: ExploreQuery, signal: AbortSignal): Promise<ExploredList> {
    const parent = under === undefined ? undefined : this.#nodeOf(under);
    if (first === 0 && search.length === 0) this.#last = undefined;
    const children =
      this.#last?.under === under && this.#last ? this.#last.children : await this.#children(under, signal);
    const matching = children.filter((child) => {
      const text = `${child.name} ${child.nodeId.toString()}`.toLowerCase();
      return search.every((word) => text.includes(word));
    });
    const shown = matching.slice(first, first + count);
    if (this.#known.size + shown.length > mostNodes)
      throw new AgentError("SOURCE_PROTOCOL", `more than ${mostNodes} nodes were listed`, {
        hint: "connect again, and open fewer branches",
      });
    const below = await this.#services.children(
      shown.map(({ nodeId }) => nodeId),
      signal,
    );
    const facts = await factsOf(this.#services, shown, signal);
    const nodes = shown.map(({ nodeId, name }, i): ExploredNode => {
      const key = portableNodeId(nodeId.toString(), this.#namespaces);
      const path = [...(parent?.path ?? []), name];
      this.#known.set(key, { nodeId, path });
      const branch = below[i]?.some(isOffered) ?? false;
      return {
        key,
        address: key,
        name,
        path,
        depth: path.length - 1,
        branch,
        signal: {},
        tag: { node: key },
        ...facts[i],
      };
    });
    return { nodes, total: matching.length, busy: false, notes: [] };
  }

  async values(keys: readonly string[], signal: AbortSignal) {
    const nodes = keys.map((key) => this.#nodeOf(key).nodeId);
    const read = await readValues(this.#services, nodes, signal);
    return new Map(
      read.flatMap(({ value }, i) => {
        const converted = convert(value);
        const key = keys[i];
        return "value" in converted && converted.value !== undefined && key !== undefined
          ? [[key, converted.value] as const]
          : [];
      }),
    );
  }

  async #children(under: string | undefined, signal: AbortSignal): Promise<readonly Child[]> {
    const nodeId = under === undefined ? objects : this.#nodeOf(under).nodeId;
    const [found = []] = await this.#services.children([nodeId], signal);
    const seen = new Set<string>();
    const children = found.filter((child) => {
      const key = child.nodeId.toString();
      if (!isOffered(child) || seen.has(key)) return false;
      seen.add(key);
      return true;
    });
    this.#last = { under, children };
    return children;
  }

  #nodeOf(key: string): KnownNode {
    const known = this.#known.get(key);
    if (known) return known;
    throw new AgentError("CONFIG_INVALID", `${key} was not listed by this connection`, { hint: "connect again" });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#resources.disposeAsync();
  }
}
