// Input names, so that frames carry numbers. Each node has a dictionary in the key-value bucket, in parts to which names
// are only appended: `names.<node>.<dictionary>.<first number>`. A name is stored before the first frame that uses it. The
// node also keeps the names in a file. If the servers lose the bucket while the node is off, it stores them again for the
// frames of its kept tail.
import { randomBytes } from "node:crypto";
import { zstdCompressSync, zstdDecompressSync } from "node:zlib";
import { z } from "zod";
import { type KeyBucket, type KeyEntry, keyToken, type PointStream } from "../../cluster/connection/jetstream.ts";
import { AgentError } from "../../core/errors.ts";
import { type InputId, isInputId } from "../../core/point.ts";
import type { Clock } from "../../core/runtime.ts";
import { readStateFile, writeStateFile } from "../../lib/files/state-file.ts";
import { RangeSet } from "../disk/counters/ranges.ts";
import { InputTable } from "../disk/format/input-table.ts";
import type { FrameHeader } from "./stream-frame.ts";

/** Maximum names in a part, which then stays far below 1 MiB. */
const partNames = 4_096;
/** Names missing for this long count as lost, and are looked up again at this interval. */
const missingMs = 10_000;

export const subjectOf = ({ subject }: Pick<PointStream, "subject">, node: string) => `${subject}.${keyToken(node)}`;
const prefixOf = (node: string, dictionary: string) => `names.${keyToken(node)}.${dictionary}.`;

const savedNames = z.object({
  dictionary: z.string(),
  names: z.array(z.custom<InputId>((name) => typeof name === "string" && isInputId(name))),
});
type SavedNames = z.output<typeof savedNames>;

/** Joins the names of the parts from number 0 on. A part may repeat the last names of the part before. */
function chainOf(entries: readonly KeyEntry[]): InputId[] {
  const names: InputId[] = [];
  const firstOf = ({ key }: KeyEntry) => Number(key.slice(key.lastIndexOf(".") + 1));
  // The cast is safe: only `PublishedNames` writes these names.
  for (const entry of entries.toSorted((a, b) => firstOf(a) - firstOf(b)))
    if (firstOf(entry) <= names.length) {
      const part = JSON.parse(String(zstdDecompressSync(entry.value))) as InputId[];
      names.push(...part.slice(names.length - firstOf(entry)));
    }
  return names;
}

/** The dictionary of this node, written by the forwarder. Each call rejects as the bucket does. */
export class PublishedNames {
  readonly #bucket: KeyBucket;
  readonly #node: string;
  readonly #path: string;
  #table = new InputTable();
  /** Number of names in the bucket, and in the file. */
  #stored = 0;
  #saved = 0;
  /** The part that the next names are appended to. Without a revision: it is not known whether it exists. */
  #part: { readonly first: number; readonly revision?: number } = { first: 0 };
  dictionary = "";

  constructor(bucket: KeyBucket, node: string, path: string) {
    this.#bucket = bucket;
    this.#node = node;
    this.#path = path;
  }

  async open(): Promise<void> {
    const own = await readStateFile(this.#path, savedNames);
    const { dictionary, names } = own ?? (await this.#longest());
    this.dictionary = dictionary;
    this.#table = new InputTable();
    for (const name of names) this.#table.numberOf(name);
    if (own) this.#saved = this.#table.size;
    await this.#storeAll();
  }

  /** The dictionary of this node in the bucket that has the most names, or a new one. */
  async #longest(): Promise<SavedNames> {
    const entries = await this.#bucket.list(`names.${keyToken(this.#node)}.`);
    let found: SavedNames = { dictionary: randomBytes(4).toString("hex"), names: [] };
    for (const [dictionary, parts] of Map.groupBy(entries, ({ key }) => key.split(".").at(-2)!)) {
      const names = chainOf(parts);
      if (names.length > found.names.length) found = { dictionary, names };
    }
    return found;
  }

  async numbersOf(inputs: readonly InputId[]): Promise<number[]> {
    const numbers = inputs.map((input) => this.#table.numberOf(input));
    await this.#store();
    return numbers;
  }

  /** Stores names again that the servers have lost: frames in the stream or the tail may refer to them. */
  async restore(): Promise<void> {
    const entries = await this.#bucket.list(prefixOf(this.#node, this.dictionary));
    if (chainOf(entries).length !== this.#stored) await this.#storeAll();
  }

  async #save(): Promise<void> {
    await writeStateFile(this.#path, { dictionary: this.dictionary, names: this.#table.since(0) });
    this.#saved = this.#table.size;
  }

  async #storeAll(): Promise<void> {
    [this.#stored, this.#part] = [0, { first: 0 }];
    await this.#store();
  }

  async #store(): Promise<void> {
    if (this.#saved < this.#table.size) await this.#save();
    while (this.#stored < this.#table.size) {
      if (this.#stored - this.#part.first >= partNames) this.#part = { first: this.#stored };
      const { first, revision: last } = this.#part;
      const names = this.#table.since(first);
      const part = names.slice(0, partNames);
      const key = `${prefixOf(this.#node, this.dictionary)}${first}`;
      const value = zstdCompressSync(JSON.stringify(part));
      const put = last === undefined ? this.#bucket.create(key, value) : this.#bucket.update(key, value, last);
      const revision = await put;
      if (revision !== undefined) this.#stored = first + part.length;
      this.#part = { first, ...(revision !== undefined && { revision }) };
      if (revision === undefined) await this.#continue(key, names);
    }
  }

  /** Continues a part that exists: after a restart or a lost answer it is our own. */
  async #continue(key: string, names: readonly InputId[]): Promise<void> {
    const { first } = this.#part;
    const entry = await this.#bucket.get(key);
    if (!entry) throw new AgentError("CLUSTER_UNREACHABLE", `${key} is not there and cannot be created`);
    const found = chainOf([{ ...entry, key: ".0" }]);
    if (found.length > 0 && isPrefix(found, names)) {
      this.#part = { first, revision: entry.revision };
      this.#stored = first + found.length;
    } else {
      this.dictionary = randomBytes(4).toString("hex");
      [this.#stored, this.#part] = [0, { first: 0 }];
      await this.#save();
    }
  }
}

function isPrefix(some: readonly InputId[], all: readonly InputId[]): boolean {
  return some.every((name, i) => name === all[i]);
}

/** The dictionaries of all nodes, as loaded by the reader of the stream. */
export class StreamNames {
  readonly #bucket: KeyBucket;
  readonly #clock: Clock;
  readonly #names = new Map<string, readonly InputId[]>();
  /** By dictionary: when names were first missed and last looked up. */
  readonly #missing = new Map<string, { readonly since: number; lookedAt: number }>();

  constructor(bucket: KeyBucket, clock: Clock) {
    this.#bucket = bucket;
    this.#clock = clock;
  }

  /**
   * At least `count` names, by number. Undefined: the cluster has lost them. Rejects as the bucket does, and while they
   * are missing for less than 10 s, since a replica may be behind.
   */
  async of({ node, dictionary }: FrameHeader, count: number): Promise<readonly InputId[] | undefined> {
    const prefix = prefixOf(node, dictionary);
    const known = this.#names.get(prefix);
    if (known && known.length >= count) return known;
    const now = this.#clock.monotonic();
    const missing = this.#missing.get(prefix) ?? { since: now, lookedAt: Number.NEGATIVE_INFINITY };
    const isLost = now - missing.since >= missingMs;
    if (isLost && now - missing.lookedAt < missingMs) return undefined;
    const names = chainOf(await this.#bucket.list(prefix));
    if (names.length >= count) {
      this.#missing.delete(prefix);
      this.#names.set(prefix, names);
      return names;
    }
    missing.lookedAt = now;
    this.#missing.set(prefix, missing);
    if (isLost) return undefined;
    throw new AgentError("CLUSTER_UNREACHABLE", `the names of the inputs of ${node} are not in the cluster`);
  }
}

interface Nameless {
  readonly header: FrameHeader;
  readonly positions: RangeSet;
  /** The highest number of an input. */
  most: number;
}

/** Frames whose input names the cluster has lost. They stay in the stream until their agent has written the names again. */
export class NamelessFrames {
  readonly #byDictionary = new Map<string, Nameless>();

  /** `most`: the highest number of its inputs. */
  add(header: FrameHeader, at: number, most: number): void {
    const dictionary = `${header.node}\n${header.dictionary}`;
    let entry = this.#byDictionary.get(dictionary);
    if (!entry) this.#byDictionary.set(dictionary, (entry = { header, positions: new RangeSet(), most }));
    entry.positions.add(at, at + 1);
    entry.most = Math.max(entry.most, most);
  }

  /** Positions of frames whose names have reappeared; it forgets them. */
  async found(names: Pick<StreamNames, "of">): Promise<readonly RangeSet[]> {
    const found: RangeSet[] = [];
    for (const [dictionary, { header, positions, most }] of this.#byDictionary) {
      if (!(await names.of(header, most + 1))) continue;
      found.push(positions);
      this.#byDictionary.delete(dictionary);
    }
    return found;
  }

  clear(): void {
    this.#byDictionary.clear();
  }
}
