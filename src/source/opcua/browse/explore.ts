// Browses a server branch by branch, as a person opens them, with current values.
import type { BrowseTarget, ExploredList, ExploredNode, ExploreQuery, Explorer } from "../../../core/commissioning.ts";
import { AgentError } from "../../../core/errors.ts";
import type { Runtime } from "../../../core/runtime.ts";
import { portableNodeId } from "../config/node-address.ts";
import { type Child, isOffered, type NodeId, readValues } from "../session/services.ts";
import { convert } from "../types/value.ts";
import { factsOf, mostNodes, objects, openBrowser } from "./browse.ts";

/** A node that was listed. */
interface KnownNode {
  readonly nodeId: NodeId | string;
  readonly path: readonly string[];
}

type FoundNode = Child & KnownNode;

/** The nodes of a branch, or with `below` all nodes of the branches below it, too. */
interface Found {
  readonly under: string | undefined;
  readonly below: boolean;
  readonly nodes: readonly FoundNode[];
  readonly notes: readonly string[];
}

/** Bounds of a search: nodes, and milliseconds. A request of the page takes 20 s at most. */
const mostSearched = 10_000;
const searchWithinMs = 8_000;
/** Nodes whose children are read before the bounds are checked again. */
const parentsAtOnce = 500;

/** The session is temporary and ends with the explorer. Rejects like `browseOpcua`. */
export async function exploreOpcua(target: BrowseTarget, runtime: Runtime, signal: AbortSignal): Promise<Explorer> {
  const { services, namespaces, resources } = await openBrowser(target, runtime, signal);
  const { clock } = runtime;
  const listed = new Map<string, KnownNode>();
  /** What was listed last, so that paging and another word of a search ask the server once. */
  let latest: Found | undefined;

  /** Level by level, so that a search with bounds finds what is near. */
  async function find(under: string | undefined, below: boolean, signal: AbortSignal): Promise<Found> {
    const seen = new Set<string>();
    const nodes: FoundNode[] = [];
    const end = clock.monotonic() + searchWithinMs;
    const waiting: KnownNode[] = [under === undefined ? { nodeId: objects, path: [] } : nodeOf(under)];
    const isOver = () => nodes.length >= mostSearched || clock.monotonic() > end;
    do {
      const parents = waiting.splice(0, parentsAtOnce);
      const ids = parents.map(({ nodeId }) => nodeId);
      for (const [i, children] of (await services.children(ids, signal)).entries())
        for (const child of children) {
          const key = child.nodeId.toString();
          if (!isOffered(child) || seen.has(key)) continue;
          seen.add(key);
          const node = { ...child, path: [...(parents[i]?.path ?? []), child.name] };
          nodes.push(node);
          if (below) waiting.push(node);
        }
    } while (waiting.length > 0 && !isOver());
    const searched = `${nodes.length} nodes below this branch were searched`;
    const note = waiting.length > 0 ? `the first ${searched}: open a branch to search in it` : `all ${searched}`;
    return { under, below, nodes, notes: below ? [note] : [] };
  }

  function nodeOf(key: string): KnownNode {
    const known = listed.get(key);
    if (known) return known;
    throw new AgentError("CONFIG_INVALID", `${key} was not listed by this connection`, { hint: "connect again" });
  }

  return {
    tree: true,
    async list({ under, search, first, count }: ExploreQuery, signal: AbortSignal): Promise<ExploredList> {
      const below = search.length > 0;
      if (first === 0 && !below) latest = undefined;
      const last = latest;
      const known = last && last.under === under && last.below === below ? last : undefined;
      const { nodes: all, notes } = (latest = known ?? (await find(under, below, signal)));
      const depth = under === undefined ? 0 : nodeOf(under).path.length;
      const matching = all.filter(({ path, name, nodeId }) => {
        const own = `${name} ${nodeId.toString()}`.toLowerCase();
        const text = `${path.slice(depth).join(".")} ${own}`.toLowerCase();
        // Everything below a node has its name in the path, but is not what a person looks for.
        return !below || (search.every((word) => text.includes(word)) && search.some((word) => own.includes(word)));
      });
      const shown = matching.slice(first, first + count);
      if (listed.size + shown.length > mostNodes)
        throw new AgentError("SOURCE_PROTOCOL", `more than ${mostNodes} nodes were listed`, {
          hint: "connect again, and open fewer branches",
        });
      const children = await services.children(
        shown.map(({ nodeId }) => nodeId),
        signal,
      );
      const facts = await factsOf(services, shown, signal);
      const nodes = shown.map(({ nodeId, name, path }, i): ExploredNode => {
        const key = portableNodeId(nodeId.toString(), namespaces);
        listed.set(key, { nodeId, path });
        const branch = children[i]?.some(isOffered) ?? false;
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
      return { nodes, total: matching.length, busy: false, notes };
    },
    async values(keys: readonly string[], signal: AbortSignal) {
      const nodes = keys.map((key) => nodeOf(key).nodeId);
      const read = await readValues(services, nodes, signal);
      return new Map(
        read.flatMap(({ value }, i) => {
          const converted = convert(value);
          const key = keys[i];
          return "value" in converted && converted.value !== undefined && key !== undefined
            ? [[key, converted.value] as const]
            : [];
        }),
      );
    },
    [Symbol.asyncDispose]: () => resources.disposeAsync(),
  };
}
