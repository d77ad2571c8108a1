// An explorer for a protocol that lists everything in one run: nodes are collected while a person already sees them.
import type {
  BrowsedNode,
  BrowseListener,
  DeviceSearch,
  ExploredList,
  ExploredNode,
  ExploreQuery,
  Explorer,
} from "../../core/commissioning.ts";
import type { Clock } from "../../core/runtime.ts";

/** Most nodes that are kept. */
const mostNodes = 20_000;

/** Nodes with their keys and paths, in order. */
class NodeList {
  readonly nodes = new Map<string, ExploredNode>();
  readonly #path: string[] = [];
  leftOut = 0;

  add(node: BrowsedNode): void {
    this.#path.length = Math.min(this.#path.length, node.depth);
    this.#path[node.depth] = node.name;
    if (this.nodes.size >= mostNodes) this.leftOut++;
    else {
      const key = keyOf(node, this.nodes);
      // Levels that the device did not list have no name.
      this.nodes.set(key, { ...node, key, path: this.#path.filter((name) => name !== undefined), branch: false });
    }
  }

  /** Reads these nodes again. A node without a value keeps the one that it had. */
  async refresh(keys: readonly string[], search: Pick<DeviceSearch, "values">): Promise<void> {
    const nodes = keys.flatMap((key) => this.nodes.get(key) ?? []);
    const values = await search.values(nodes);
    for (const [i, node] of nodes.entries()) {
      const value = values[i];
      if (value !== undefined) this.nodes.set(node.key, { ...node, value });
    }
  }
}

/** `current` gives what was found so far, and whether more may follow. */
function explorerOf(
  current: () => { readonly list: NodeList; readonly busy: boolean; readonly failure: Error | undefined },
  close: () => Promise<void>,
  refresh: (keys: readonly string[]) => Promise<void> = async () => {},
): Explorer {
  return {
    tree: false,
    async list({ search, first, count }: ExploreQuery): Promise<ExploredList> {
      const { list, busy, failure } = current();
      // What was found before a failure stays of use.
      if (failure !== undefined && list.nodes.size === 0) throw failure;
      const matching = [...list.nodes.values()].filter((node) => matches(node, search));
      const notes = [
        ...(list.leftOut > 0 ? [`${list.leftOut} more were found and are not listed`] : []),
        ...(failure ? [`the search ended early: ${failure.message}`] : []),
      ];
      return { nodes: matching.slice(first, first + count), total: matching.length, busy, notes };
    },
    async values(keys) {
      await refresh(keys);
      const { list } = current();
      return new Map(
        keys.flatMap((key) => {
          const value = list.nodes.get(key)?.value;
          return value === undefined ? [] : [[key, value] as const];
        }),
      );
    },
    [Symbol.asyncDispose]: close,
  };
}

/** Takes the nodes of `browse` as they come. `browse` ends when `stop` aborts. `search`: reads their values again. */
export function collect(browse: AsyncIterable<BrowsedNode>, stop: AbortController, search?: DeviceSearch): Explorer {
  const list = new NodeList();
  let busy = true;
  let failure: Error | undefined;
  const run = async () => {
    try {
      for await (const node of browse) list.add(node);
    } catch (error) {
      if (!stop.signal.aborted) failure = error instanceof Error ? error : new Error(String(error));
    } finally {
      busy = false;
    }
  };
  const running = run();
  const close = async () => {
    stop.abort(new Error("no longer needed"));
    await running;
    await search?.[Symbol.asyncDispose]();
  };
  return explorerOf(
    () => ({ list, busy, failure }),
    close,
    async (keys) => {
      if (search) await list.refresh(keys, search);
    },
  );
}

/** How long a device that sends by itself counts as being searched, in milliseconds. */
const listenMs = 10_000;
/** A list of thousands of topics is made at most once in this time, in milliseconds. */
const sharedMs = 1_000;

/** Shows what `listener` has received, with the latest values. */
export function followListener(listener: BrowseListener, clock: Clock): Explorer {
  const begin = clock.monotonic();
  let failure: Error | undefined;
  let last: { readonly list: NodeList; readonly at: number } | undefined;
  listener.lost.then(
    (error) => (failure = error),
    () => {},
  );
  const current = () => {
    const now = clock.monotonic();
    if (!last || now - last.at >= sharedMs) {
      const list = new NodeList();
      for (const node of listener.nodes()) list.add(node);
      last = { list, at: now };
    }
    return { list: last.list, busy: failure === undefined && now - begin < listenMs, failure };
  };
  return explorerOf(current, async () => {
    await listener[Symbol.asyncDispose]();
  });
}

/** The tag itself, since an address such as a topic may have several values. */
function keyOf({ address, name, tag }: BrowsedNode, taken: ReadonlyMap<string, unknown>): string {
  const key = JSON.stringify([address, name, tag]);
  let free = key;
  for (let n = 2; taken.has(free); n++) free = `${key} ${n}`;
  return free;
}

/** Whether every word is in the names or the address. */
function matches({ path, address }: Pick<ExploredNode, "path" | "address">, search: readonly string[]): boolean {
  if (search.length === 0) return true;
  const text = `${path.join(".")} ${address}`.toLowerCase();
  return search.every((word) => text.includes(word));
}
