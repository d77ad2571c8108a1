// Topic → the tags that want its messages and what their templates capture, remembered by topic.
import type { Captures, TagId } from "../../core/source.ts";
import type { Decoder } from "./decoders/decoder.ts";
import type { NameTable } from "./name-tables.ts";
import type { ScopeCaptures } from "./sparkplug/scope.ts";
import type { MqttTag } from "./tag.ts";
import type { TagAddress } from "./tag-address.ts";
import { maxTopic, TopicTrie } from "./topic-trie.ts";

/** A tag with what has been worked out about it once. */
export interface Subscriber {
  readonly id: TagId;
  readonly tag: MqttTag;
  readonly address: TagAddress;
  readonly decode: Decoder;
  /** Sparkplug B: captures of its metrics. */
  readonly scoped?: ScopeCaptures | undefined;
}

/** One tag's share of the messages of one topic. The same object comes again for the same topic while it is remembered. */
export interface Route extends Subscriber {
  readonly captures: Captures;
  /** Address of the readings: the topic, in which a level that is a time stands as `{name}`. */
  readonly from: string;
  /** As `Reading.device`: topics that differ in their last level only are those of one device. */
  readonly device?: string | undefined;
  /** Captures that the payload has a part in, by what it says; filled as they appear. */
  elements?: Map<string, Element | undefined>;
  /** Names that the device tells for its data; looked up once. */
  nameTable?: NameTable;
}

/** A part of a payload that has an Input ID of its own. Undefined in `Route.elements`: nothing tells it from other parts. */
export interface Element {
  readonly captures: Captures;
  /** Address of its readings. */
  readonly from: string;
}

/** Refers to its subscriber instead of repeating it: there is one for each topic. */
class TopicRoute implements Route {
  readonly captures: Captures;
  readonly from: string;
  readonly device: string | undefined;
  elements?: Map<string, Element | undefined>;
  nameTable?: NameTable;
  readonly #subscriber: Subscriber;

  constructor(subscriber: Subscriber, captures: Captures, from: string) {
    this.#subscriber = subscriber;
    this.captures = captures;
    this.from = from;
    this.device = subscriber.address.time && from.slice(0, Math.max(0, from.lastIndexOf("/")));
  }

  get id(): TagId {
    return this.#subscriber.id;
  }

  get tag(): MqttTag {
    return this.#subscriber.tag;
  }

  get address(): TagAddress {
    return this.#subscriber.address;
  }

  get decode(): Decoder {
    return this.#subscriber.decode;
  }

  get scoped(): ScopeCaptures | undefined {
    return this.#subscriber.scoped;
  }
}

/** Finds and remembers routes. Of topics not seen lately it forgets, so that topics without end cost no memory. */
export class TopicRouter {
  readonly #trie = new TopicTrie<Subscriber>();
  readonly #remembered: number;
  // Two generations: when the young one is full, what was not used since it began is forgotten.
  #young = new Map<string, readonly Route[]>();
  #old = new Map<string, readonly Route[]>();

  /** `remembered`: how many topics at least. */
  constructor(subscribers: Iterable<Subscriber>, remembered: number) {
    this.#remembered = remembered;
    for (const subscriber of subscribers) this.#trie.insert(subscriber.address.levels, subscriber);
  }

  /** Those whose payload is decoded in the same way stand together. None: no tag wants messages of this topic. */
  routes(topic: string): readonly Route[] {
    return this.#young.get(topic) ?? this.#remember(topic);
  }

  #remember(topic: string): readonly Route[] {
    const routes = this.#old.get(topic) ?? this.#find(topic);
    if (topic.length > maxTopic) return routes;
    if (this.#young.size >= this.#remembered) {
      this.#old = this.#young;
      this.#young = new Map();
    }
    this.#young.set(topic, routes);
    return routes;
  }

  #find(topic: string): readonly Route[] {
    const levels = topic.split("/");
    // In the order of the configuration, which is the order of the readings then.
    const found = this.#trie.match(levels).toSorted((a, b) => a.id - b.id);
    const grouped = [...Map.groupBy(found, ({ decode }) => decode).values()].flat();
    // An array made by its length has no room to grow, which for one element would be the most of it.
    return grouped.map(
      (subscriber) => new TopicRoute(subscriber, capture(subscriber.tag, levels), addressOf(subscriber.tag, topic)),
    );
  }
}

/** A topic that tells the time is another one each time, and the same address. */
function addressOf({ topic: { captures }, time }: MqttTag, topic: string): string {
  const timed = captures.find(({ name }) => name === time?.capture);
  if (!timed) return topic;
  const levels = topic.split("/");
  return [
    ...levels.slice(0, timed.level),
    `{${timed.name}}`,
    ...(timed.rest ? [] : levels.slice(timed.level + 1)),
  ].join("/");
}

function capture({ topic }: MqttTag, levels: readonly string[]): Captures {
  return Object.fromEntries(
    topic.captures.map(({ name, level, rest, apply }) => {
      const text = rest ? levels.slice(level).join("/") : (levels[level] ?? "");
      return [name, apply ? apply(text) : text];
    }),
  );
}
