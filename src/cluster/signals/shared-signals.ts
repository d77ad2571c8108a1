// The metadata that all agents have published, for the agent that delivers. Its catalog gets the last change of each.
import { setImmediate } from "node:timers/promises";
import type { InputId } from "../../core/point.ts";
import type { SignalCatalog } from "../../core/signal.ts";
import type { KeyBucket, KeyEntry } from "../connection/jetstream.ts";
import { allSignals, decodePart, type PublishedSignal, partsOf } from "./published-signals.ts";

export interface SharedSignalsOptions {
  readonly state: KeyBucket;
  /** As `Membership` has them. `signals` changes with what the agent has published. */
  readonly members: {
    readonly members: readonly {
      readonly node: string;
      readonly boot: string;
      readonly signals?: string | undefined;
    }[];
  };
  readonly catalog: SignalCatalog;
}

/** Signals to describe before other tasks run. */
const slice = 500;

/** Each call rejects as the bucket does. */
export class SharedSignals {
  readonly #options: SharedSignalsOptions;
  /** By prefix of a node: its mark when its parts were read, and the order of each of its signals. */
  readonly #nodes = new Map<string, { readonly mark: string; readonly orders: ReadonlyMap<InputId, number> }>();
  readonly #orders = new Map<InputId, number>();
  #isComplete = false;

  constructor(options: SharedSignalsOptions) {
    this.#options = options;
  }

  /** Whether an agent describes the input. True for all inputs while it is not known what every agent describes. */
  has(input: string): boolean {
    // The cast is safe: it only looks the text up.
    return !this.#isComplete || this.#orders.has(input as InputId);
  }

  /** Reads the parts of all agents, also of those that are off. */
  async open(): Promise<void> {
    const nodes = this.#marks();
    const entries = await this.#options.state.list(allSignals);
    const prefixOf = ({ key }: KeyEntry) => key.slice(0, key.lastIndexOf(".") + 1);
    const parts = Map.groupBy(entries, prefixOf);
    await this.#take([...parts].map(([prefix, of]) => ({ prefix, mark: nodes.get(prefix) ?? "", entries: of })));
    await this.refresh();
  }

  /** Reads the parts of the agents that have published something since. */
  async refresh(): Promise<void> {
    const read = [];
    const marks = this.#marks();
    for (const [prefix, mark] of marks)
      if (mark !== undefined && this.#nodes.get(prefix)?.mark !== mark)
        read.push({ prefix, mark, entries: await this.#options.state.list(prefix) });
    if (read.length > 0) await this.#take(read);
    this.#isComplete = marks.size > 0 && [...marks.values()].every((mark) => mark !== undefined);
  }

  #marks(): ReadonlyMap<string, string | undefined> {
    return new Map(
      this.#options.members.members.map(({ node, boot, signals }) => [
        partsOf(node),
        signals === undefined ? undefined : `${boot} ${signals}`,
      ]),
    );
  }

  async #take(
    read: readonly { readonly prefix: string; readonly mark: string; readonly entries: readonly KeyEntry[] }[],
  ): Promise<void> {
    const described: PublishedSignal[] = [];
    const before = new Map<InputId, number | undefined>();
    for (const { prefix, mark, entries } of read) {
      const orders = new Map<InputId, number>();
      for (const entry of entries) {
        for (const one of decodePart(entry)) {
          described.push(one);
          orders.set(one.input, Math.max(one.order, orders.get(one.input) ?? 0));
        }
        await setImmediate();
      }
      for (const input of this.#nodes.get(prefix)?.orders.keys() ?? []) before.set(input, this.#orders.get(input));
      this.#nodes.set(prefix, { mark, orders });
    }
    // Orders may also fall: after a signal was removed, or after the servers have lost the bucket.
    for (const input of before.keys()) this.#orders.delete(input);
    for (const { orders } of this.#nodes.values())
      for (const input of before.keys()) this.#raise(input, orders.get(input));
    for (const { input, order } of described) this.#raise(input, order);
    await this.#describe(described);
    for (const [input, order] of before) {
      const now = this.#orders.get(input);
      if (now === undefined || now === order) continue;
      // Another agent's description applies now: its parts are read again.
      for (const [prefix, node] of this.#nodes)
        if (node.orders.get(input) === now && !read.some((one) => one.prefix === prefix))
          this.#nodes.set(prefix, { ...node, mark: "" });
    }
  }

  #raise(input: InputId, order: number | undefined): void {
    if (order !== undefined && order > (this.#orders.get(input) ?? 0)) this.#orders.set(input, order);
  }

  async #describe(described: readonly PublishedSignal[]): Promise<void> {
    let changed = 0;
    for (const { input, signal, order } of described) {
      if (order !== this.#orders.get(input)) continue;
      this.#options.catalog.describe(input, signal);
      if (++changed % slice === 0) await setImmediate();
    }
  }
}
