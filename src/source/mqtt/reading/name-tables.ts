// Tables of names that a device sends in separate messages, such as the name for the ID `101` in its data. They are
// stored on disk. After a restart, the broker may deliver queued data before it repeats the names.
import { z } from "zod";
import type { Logger } from "../../../core/runtime.ts";
import type { Captures } from "../../../core/source.ts";
import { stateFile } from "../../../lib/files/state-file.ts";
import type { MqttTag } from "../config/tag.ts";
import { type Message, payloadBytes } from "../connection/packet-reader.ts";
import { statePath } from "../connection/session-state.ts";
import { expand, follow, scalarText } from "../decoders/json-path.ts";
import { jsonDocument, PayloadError } from "../decoders/payload.ts";
import { capturesIn } from "../topics/topic-template.ts";
import { maxTopic, TopicTrie } from "../topics/topic-trie.ts";

/** Persistent content: key of the table → ID → name. */
export type KnownNames = Readonly<Record<string, Readonly<Record<string, string>>>>;

/** ID → name. The object stays the same during a connection, and is filled when names arrive. */
export type NameTable = ReadonlyMap<string, string>;

type Names = NonNullable<MqttTag["names"]>;

/** Most tables, since topics may be unbounded. `maxElements` limits the names of a table. */
const maxTables = 1_000;
/** Most topics in the cache of topics with names. It is used for each message of the connection. */
const maxTopics = 50_000;

export class NameTables {
  readonly #trie = new TopicTrie<Names>();
  readonly #tables = new Map<string, Map<string, string>>();
  #namesOfTopic = new Map<string, readonly Names[]>();
  readonly #changed: (known: KnownNames) => void;
  /** Filters of the topics with names. */
  readonly filters: readonly string[];

  /** `changed`: called with all names after some were learnt. */
  constructor(
    tags: readonly Pick<MqttTag, "names">[],
    known: KnownNames = {},
    changed: (known: KnownNames) => void = () => {},
  ) {
    this.#changed = changed;
    const distinct = new Map<string, Names>();
    for (const { names } of tags) if (names) distinct.set(identity(names), names);
    for (const names of distinct.values()) this.#trie.insert(names.topic.pattern, names);
    this.filters = [...new Set([...distinct.values()].map(({ topic }) => topic.filter))];
    for (const [key, entries] of Object.entries(known)) this.#tables.set(key, new Map(Object.entries(entries)));
  }

  of(names: Names, captures: Captures): NameTable {
    return this.#table(names, captures) ?? new Map();
  }

  /** Stores the names in `message`. False: it carries none. Throws `PayloadError`. */
  learn(message: Pick<Message, "topic" | "payload" | "skippedBytes">, maxPayload: number): boolean {
    const { topic, payload } = message;
    const namesOfTopic = this.#namesFor(topic);
    if (namesOfTopic.length === 0) return false;
    // Deleting a retained message removes no names, since more data may follow.
    const bytes = payloadBytes(message);
    if (bytes === 0) return true;
    if (bytes > maxPayload) throw new PayloadError(`of ${bytes} bytes is larger than maxPayload`);
    const document = jsonDocument(payload);
    let changed = false;
    for (const names of namesOfTopic) {
      const table = this.#table(names, capturesIn(topic, names.topic.captures));
      if (table && replace(table, read(names, document))) changed = true;
    }
    if (changed)
      this.#changed(Object.fromEntries([...this.#tables].map(([key, each]) => [key, Object.fromEntries(each)])));
    return true;
  }

  #table(names: Names, captures: Captures): Map<string, string> | undefined {
    const key = JSON.stringify([identity(names), ...names.topic.captures.map(({ name }) => captures[name] ?? "")]);
    const known = this.#tables.get(key);
    if (known || this.#tables.size >= maxTables) return known;
    const made = new Map<string, string>();
    this.#tables.set(key, made);
    return made;
  }

  #namesFor(topic: string): readonly Names[] {
    const known = this.#namesOfTopic.get(topic);
    if (known) return known;
    const found = this.#trie.match(topic);
    if (this.#namesOfTopic.size >= maxTopics) this.#namesOfTopic = new Map();
    if (topic.length <= maxTopic) this.#namesOfTopic.set(topic, found);
    return found;
  }
}

/** Equal for tags that share their names. */
function identity({ topic, id, name }: Names): string {
  return JSON.stringify([topic.text, id.text, name.text]);
}

function read({ id, name }: Names, document: unknown): Map<string, string> {
  const found = new Map<string, string>();
  for (const { value, keys } of expand(document, id, [])) {
    const text = scalarText(follow(document, name, keys));
    const key = scalarText(value);
    if (key !== undefined && text !== undefined && text !== "") found.set(key, text);
  }
  if (found.size === 0) throw new PayloadError(`has no names at ${name.text}`);
  return found;
}

function replace(table: Map<string, string>, found: ReadonlyMap<string, string>): boolean {
  if (table.size === found.size && [...found].every(([key, name]) => table.get(key) === name)) return false;
  table.clear();
  for (const [key, name] of found) table.set(key, name);
  return true;
}

const content = z.record(z.string(), z.record(z.string(), z.string()));

/** State file of one source at one broker. After its loss, names are missing until the broker repeats them. */
export function namesFile(folder: string, url: string, log: Logger) {
  return stateFile(statePath(folder, "names", url), content, {
    log,
    unreadable: "cannot read the stored names of devices; they are learnt again",
    unwritable: "cannot store the names of devices",
  });
}
