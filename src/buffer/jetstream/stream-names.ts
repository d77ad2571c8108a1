// Names of the inputs, so that frames carry numbers. Each node has a dictionary in the key-value bucket, in parts that are
// never changed: `names.<node>.<dictionary>.<first number>`. A part is stored before the first frame that uses it.
import { randomBytes } from "node:crypto";
import { zstdCompressSync, zstdDecompressSync } from "node:zlib";
import type { KeyBucket, KeyEntry } from "../../cluster/jetstream.ts";
import { pointSubject } from "../../cluster/nats-stream.ts";
import { AgentError } from "../../core/errors.ts";
import type { InputId } from "../../core/point.ts";
import { InputTable } from "../disk/format/input-table.ts";

/** Names of a part at most: it stays far below 1 MiB. */
const partNames = 4_096;

/** A name as part of a subject or a key. */
const tokenOf = (node: string) =>
  node.replace(/[^-_a-zA-Z0-9]/gu, (character) => `=${Buffer.from(character).toString("hex")}`);
export const subjectOf = (node: string) => `${pointSubject}.${tokenOf(node)}`;
const prefixOf = (node: string, dictionary: string) => `names.${tokenOf(node)}.${dictionary}.`;

/** The names of entries that follow each other from number 0 on. */
function chainOf(entries: readonly KeyEntry[]): InputId[] {
  const names: InputId[] = [];
  const firstOf = ({ key }: KeyEntry) => Number(key.slice(key.lastIndexOf(".") + 1));
  // Written by `PublishedNames`.
  for (const entry of entries.toSorted((a, b) => firstOf(a) - firstOf(b)))
    if (firstOf(entry) === names.length)
      names.push(...(JSON.parse(String(zstdDecompressSync(entry.value))) as InputId[]));
  return names;
}

/** The dictionary of this node, as the forwarder writes it. Each call rejects as the bucket does. */
export class PublishedNames {
  readonly #bucket: KeyBucket;
  readonly #node: string;
  #table = new InputTable();
  #stored = 0;
  dictionary = "";

  constructor(bucket: KeyBucket, node: string) {
    this.#bucket = bucket;
    this.#node = node;
  }

  /** Goes on with the dictionary of an earlier start. */
  async open(): Promise<void> {
    const entries = await this.#bucket.list(`names.${tokenOf(this.#node)}.`);
    const dictionaries = Map.groupBy(entries, ({ key }) => key.split(".").at(-2)!);
    let names: readonly InputId[] = [];
    this.dictionary = randomBytes(4).toString("hex");
    for (const [dictionary, parts] of dictionaries) {
      const chain = chainOf(parts);
      if (chain.length > names.length) [names, this.dictionary] = [chain, dictionary];
    }
    this.#table = new InputTable();
    for (const name of names) this.#table.numberOf(name);
    this.#stored = names.length;
  }

  /** Resolves once the names of these inputs are stored. */
  async numbersOf(inputs: readonly InputId[]): Promise<number[]> {
    const numbers = inputs.map((input) => this.#table.numberOf(input));
    await this.#store();
    return numbers;
  }

  /** Stores again what the servers have lost: frames that refer to it may be in the stream or come again. */
  async restore(): Promise<void> {
    const entries = await this.#bucket.list(prefixOf(this.#node, this.dictionary));
    if (chainOf(entries).length === this.#stored) return;
    this.#stored = 0;
    await this.#store();
  }

  async #store(): Promise<void> {
    while (this.#stored < this.#table.size) {
      const first = this.#stored;
      const names = this.#table.since(first).slice(0, partNames);
      const key = `${prefixOf(this.#node, this.dictionary)}${first}`;
      const value = zstdCompressSync(JSON.stringify(names));
      if ((await this.#bucket.create(key, value)) === undefined) {
        // Ours, if the answer was lost. A former part may be shorter: what follows it then begins at its end.
        const entry = await this.#bucket.get(key);
        const length = entry ? chainOf([{ ...entry, key: "0" }]).length : 0;
        const isOurs = entry && isPrefix(chainOf([{ ...entry, key: "0" }]), this.#table.since(first));
        if (!isOurs || length === 0)
          throw new AgentError("CLUSTER_UNREACHABLE", `another agent publishes as ${this.#node}`);
        this.#stored = first + length;
      } else this.#stored = first + names.length;
    }
  }
}

function isPrefix(some: readonly InputId[], all: readonly InputId[]): boolean {
  return some.every((name, i) => name === all[i]);
}

/** The dictionaries of all nodes, as the reader of the stream loads them. */
export class StreamNames {
  readonly #bucket: KeyBucket;
  readonly #names = new Map<string, readonly InputId[]>();

  constructor(bucket: KeyBucket) {
    this.#bucket = bucket;
  }

  /** The names by number, at least as many as `count`. Rejects as the bucket does, and where they are not there. */
  async of(node: string, dictionary: string, count: number): Promise<readonly InputId[]> {
    const prefix = prefixOf(node, dictionary);
    const known = this.#names.get(prefix);
    if (known && known.length >= count) return known;
    const names = chainOf(await this.#bucket.list(prefix));
    if (names.length < count)
      throw new AgentError("CLUSTER_UNREACHABLE", `the names of the inputs of ${node} are not in the cluster`);
    this.#names.set(prefix, names);
    return names;
  }
}
