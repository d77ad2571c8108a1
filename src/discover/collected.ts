// An explorer for a protocol that lists everything in one run: nodes are collected while a person already sees them.
import type { BrowsedNode, ExploredList, ExploredNode, ExploreQuery, Explorer } from "../core/commissioning.ts";

/** Most nodes that are kept. */
const mostNodes = 20_000;

/** Takes the nodes of `browse` as they come. `browse` ends when `signal` aborts. */
export function collect(browse: AsyncIterable<BrowsedNode>, stop: AbortController): Explorer {
  const nodes = new Map<string, ExploredNode>();
  const path: string[] = [];
  let busy = true;
  let leftOut = 0;
  let failure: Error | undefined;
  const run = async () => {
    try {
      for await (const node of browse) {
        path.length = Math.min(path.length, node.depth);
        path[node.depth] = node.name;
        if (nodes.size >= mostNodes) leftOut++;
        else {
          const key = keyOf(node, nodes);
          nodes.set(key, { ...node, key, path: path.filter((name) => name !== undefined), branch: false });
        }
      }
    } catch (error) {
      if (!stop.signal.aborted) failure = error instanceof Error ? error : new Error(String(error));
    } finally {
      busy = false;
    }
  };
  const running = run();
  return {
    tree: false,
    async list({ search, first, count }: ExploreQuery): Promise<ExploredList> {
      // What was found before a failure stays of use.
      if (failure !== undefined && nodes.size === 0) throw failure;
      const matching = [...nodes.values()].filter((node) => matches(node, search));
      const notes = [
        ...(leftOut > 0 ? [`${leftOut} more were found and are not listed`] : []),
        ...(failure ? [`the search ended early: ${failure.message}`] : []),
      ];
      return { nodes: matching.slice(first, first + count), total: matching.length, busy, notes };
    },
    async values(keys) {
      return new Map(
        keys.flatMap((key) => {
          const value = nodes.get(key)?.value;
          return value === undefined ? [] : [[key, value] as const];
        }),
      );
    },
    async [Symbol.asyncDispose]() {
      stop.abort(new Error("no longer needed"));
      await running;
    },
  };
}

/** The tag itself, since an address such as a topic may have several values. */
function keyOf({ address, name, tag }: BrowsedNode, taken: ReadonlyMap<string, unknown>): string {
  const key = JSON.stringify([address, name, tag]);
  let free = key;
  for (let n = 2; taken.has(free); n++) free = `${key} ${n}`;
  return free;
}

/** Whether every word is in the names or the address. */
export function matches({ path, address }: Pick<ExploredNode, "path" | "address">, search: readonly string[]): boolean {
  if (search.length === 0) return true;
  const text = `${path.join(".")} ${address}`.toLowerCase();
  return search.every((word) => text.includes(word));
}
