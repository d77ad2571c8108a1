// Routes topics to their tags with the captures of their templates, and caches the result.
import type { Captures, TagId } from "../../../core/source.ts";
import type { MqttTag } from "../config/tag.ts";
import { type TagAddress, tagAddress, tagPattern } from "../config/tag-address.ts";
import { type Decoder, DecoderTable } from "../decoders/decoder.ts";
import { scopeCaptures } from "../topics/sparkplug-topic.ts";
import { capturesIn } from "../topics/topic-template.ts";
import { maxTopic, TopicTrie } from "../topics/topic-trie.ts";
import type { NameTable } from "./name-tables.ts";

interface Way {
  readonly address: TagAddress;
  readonly decode: Decoder;
  /** Sparkplug B: adds to the captures of a metric. */
  readonly scoped?: ReturnType<typeof scopeCaptures> | undefined;
}

interface Subscriber {
  readonly id: TagId;
  readonly tag: MqttTag;
  /** Shared by all tags that differ only in their topics. */
  readonly way: Way;
}

/** Connects one topic to one tag. Cached, and kept small, since there is at least one per topic. */
export interface Route extends Subscriber {
  readonly captures: Captures;
  /** Address of the readings: the topic, with `{name}` in place of a level that contains a time. */
  readonly from: string;
  /** As `Reading.device`. Topics that differ only in their last level belong to one device. */
  readonly device: string | undefined;
  /** Elements of the payload by their captured values, added as they appear. */
  elements?: Map<string, Element | undefined> | undefined;
  nameTable?: NameTable | undefined;
}

/** A payload part with its own Input ID. Undefined in `Route.elements`: its identity is unknown. */
export interface Element {
  readonly captures: Captures;
  readonly from: string;
}

const noRoutes: readonly Route[] = [];
/** Most tags to compare with, and most cached device names. */
const mostCompared = 64;
const mostDevices = 4_096;

/** Returns the way of a tag. Tags that differ only in their topics share it, so a payload is decoded once. */
export function waysOf(maxPayload: number): (tag: MqttTag) => Way {
  const decoders = new DecoderTable();
  const known: { readonly tag: MqttTag; readonly way: Way }[] = [];
  return (tag) => {
    const like = tag.format === "sparkplugB" ? undefined : known.find((other) => isAlike(other.tag, tag));
    if (like) return like.way;
    const address = tagAddress(tag);
    const decode = decoders.get(address.decoder, tag, maxPayload);
    const way = { address, decode, scoped: address.scope && scopeCaptures(address.scope) };
    if (known.length < mostCompared) known.push({ tag, way });
    return way;
  };
}

/** Whether two tags differ only in their topics. Equal parts of a configuration are the same object. */
function isAlike(a: MqttTag, b: MqttTag): boolean {
  const others = new Map(Object.entries(b));
  return (
    others.size === Object.keys(a).length &&
    Object.entries(a).every(([name, member]) => name === "topic" || member === others.get(name))
  );
}

/** Finds and caches routes. Topics that were not used recently are evicted, which bounds the memory. */
export class TopicRouter {
  /** By full topic; an array if several tags use the same topic. */
  readonly #fixed = new Map<string, Route | readonly Route[]>();
  /** Filters with wildcards. Undefined: none. */
  readonly #patterns: TopicTrie<Subscriber> | undefined;
  readonly #devices = new Map<string, string>();
  readonly #remembered: number;
  // Two cache generations. When the young one is full, it replaces the old one.
  #young = new Map<string, Route | readonly Route[]>();
  #old = new Map<string, Route | readonly Route[]>();

  /** `remembered`: fewest topics in the cache, not counting topics without wildcards. */
  constructor(tags: readonly MqttTag[], wayOf: (tag: MqttTag) => Way, remembered: number) {
    this.#remembered = remembered;
    for (const [index, tag] of tags.entries()) {
      const subscriber = { id: index as TagId, tag, way: wayOf(tag) }; // a TagId is the index of its tag
      const pattern = tagPattern(tag);
      if (/[+#]/.test(pattern)) (this.#patterns ??= new TopicTrie()).insert(pattern, subscriber);
      else {
        const before = this.#fixed.get(pattern);
        const route = this.#routeOf(subscriber, pattern);
        this.#fixed.set(pattern, before === undefined ? route : inGroups([...listOf(before), route]));
      }
    }
  }

  /** The routes of a topic, grouped by decoder. Empty: no tag matches. */
  routes(topic: string): readonly Route[] {
    const known = this.#patterns ? (this.#young.get(topic) ?? this.#remember(topic)) : this.#fixed.get(topic);
    return known === undefined ? noRoutes : listOf(known);
  }

  #remember(topic: string): Route | readonly Route[] {
    const routes = this.#old.get(topic) ?? this.#find(topic);
    if (topic.length > maxTopic) return routes;
    if (this.#young.size >= this.#remembered) {
      this.#old = this.#young;
      this.#young = new Map();
    }
    this.#young.set(topic, routes);
    return routes;
  }

  #find(topic: string): Route | readonly Route[] {
    const found = (this.#patterns?.match(topic) ?? []).map((subscriber) => this.#routeOf(subscriber, topic));
    const all = inGroups([...listOf(this.#fixed.get(topic) ?? noRoutes), ...found]);
    // An array for a single route would need half as much memory again.
    return all.length === 1 && all[0] ? all[0] : all;
  }

  #routeOf({ id, tag, way }: Subscriber, topic: string): Route {
    const from = addressOf(tag, topic);
    const captures = capturesIn(topic, tag.topic.captures);
    const device = way.address.time && this.#deviceOf(from);
    return { id, tag, way, captures, from, device, elements: undefined, nameTable: undefined };
  }

  /** The topic without its last level. Topics of one device share the string, for up to `mostDevices` devices. */
  #deviceOf(from: string): string {
    const device = from.slice(0, Math.max(0, from.lastIndexOf("/")));
    const known = this.#devices.get(device);
    if (known === undefined && this.#devices.size < mostDevices) this.#devices.set(device, device);
    return known ?? device;
  }
}

function listOf(routes: Route | readonly Route[]): readonly Route[] {
  return "id" in routes ? [routes] : routes;
}

/** Keeps the order of the configuration within each group of equal decoders. */
function inGroups(routes: readonly Route[]): readonly Route[] {
  if (routes.length < 2) return routes;
  const sorted = routes.toSorted((a, b) => a.id - b.id);
  return [...Map.groupBy(sorted, ({ way }) => way.decode).values()].flat();
}

/** Replaces a level with a time by its name, since the address must not change with the time. */
function addressOf({ topic: { captures }, time }: MqttTag, topic: string): string {
  const timed = captures.find(({ name }) => name === time?.capture);
  if (!timed) return topic;
  const levels = topic.split("/");
  return levels.toSpliced(timed.level, timed.rest ? levels.length : 1, `{${timed.name}}`).join("/");
}
