// Topic → the tags that want its messages and what their templates capture, remembered by topic.
import type { Captures, TagId } from "../../../core/source.ts";
import type { MqttTag } from "../config/tag.ts";
import { type TagAddress, tagAddress, tagPattern } from "../config/tag-address.ts";
import { type Decoder, DecoderTable } from "../decoders/decoder.ts";
import { ScopeCaptures } from "../topics/sparkplug-topic.ts";
import { capturesIn } from "../topics/topic-template.ts";
import { maxTopic, TopicTrie } from "../topics/topic-trie.ts";
import type { NameTable } from "./name-tables.ts";

/** How messages are read for a tag. */
export interface Way {
  readonly address: TagAddress;
  readonly decode: Decoder;
  /** Sparkplug B: captures of its metrics. */
  readonly scoped?: ScopeCaptures | undefined;
}

interface Subscriber {
  readonly id: TagId;
  readonly tag: MqttTag;
  /** The same object for all tags that differ in their topics alone. */
  readonly way: Way;
}

/**
 * One tag's share of the messages of one topic. The same object comes again for the same topic while it is remembered. Kept
 * small: there is one for each topic.
 */
export interface Route extends Subscriber {
  readonly captures: Captures;
  /** Address of the readings: the topic, in which a level that is a time stands as `{name}`. */
  readonly from: string;
  /** As `Reading.device`: topics that differ in their last level only are those of one device. */
  readonly device: string | undefined;
  /** Captures that the payload has a part in, by what it says; filled as they appear. */
  elements?: Map<string, Element | undefined> | undefined;
  /** Names that the device tells for its data; looked up once. */
  nameTable?: NameTable | undefined;
}

/** A part of a payload that has an Input ID of its own. Undefined in `Route.elements`: nothing tells it from other parts. */
export interface Element {
  readonly captures: Captures;
  /** Address of its readings. */
  readonly from: string;
}

const noRoutes: readonly Route[] = [];
/** Tags that one is compared with, and names of devices that are kept for those that are the same. */
const mostCompared = 64;
const mostDevices = 4_096;

/** The ways of many tags: one for all that differ in their topics alone, whose decoders decode a payload once. */
export function waysOf(maxPayload: number): (tag: MqttTag) => Way {
  const decoders = new DecoderTable();
  const known: { readonly tag: MqttTag; readonly way: Way }[] = [];
  return (tag) => {
    const like = tag.format === "sparkplugB" ? undefined : known.find((other) => isAlike(other.tag, tag));
    if (like) return like.way;
    const address = tagAddress(tag);
    const decode = decoders.get(address.decoder, tag, maxPayload);
    const way = { address, decode, scoped: address.scope && new ScopeCaptures(address.scope) };
    if (known.length < mostCompared) known.push({ tag, way });
    return way;
  };
}

/** Whether they differ in their topics alone. Tags of one configuration share objects that say the same. */
function isAlike(a: MqttTag, b: MqttTag): boolean {
  const others = new Map(Object.entries(b));
  return (
    others.size === Object.keys(a).length &&
    Object.entries(a).every(([name, member]) => name === "topic" || member === others.get(name))
  );
}

/** Finds and remembers routes. Of topics not seen lately it forgets, so that topics without end cost no memory. */
export class TopicRouter {
  /** By the one topic that they are for; an array where several tags want the same. */
  readonly #fixed = new Map<string, Route | readonly Route[]>();
  /** Of filters with wildcards. Undefined: there are none. */
  readonly #patterns: TopicTrie<Subscriber> | undefined;
  readonly #devices = new Map<string, string>();
  readonly #remembered: number;
  // Two generations: when the young one is full, what was not used since it began is forgotten.
  #young = new Map<string, Route | readonly Route[]>();
  #old = new Map<string, Route | readonly Route[]>();

  /** `remembered`: how many topics at least, beside those that tags name in full. */
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

  /** Those whose payload is decoded in the same way stand together. None: no tag wants messages of this topic. */
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
    // An array around one route would take half as much as the route.
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
    if (known !== undefined) return known;
    if (this.#devices.size < mostDevices) this.#devices.set(device, device);
    return device;
  }
}

function listOf(routes: Route | readonly Route[]): readonly Route[] {
  return "id" in routes ? [routes] : routes;
}

/** In the order of the configuration, which is the order of the readings then; those that decode alike together. */
function inGroups(routes: readonly Route[]): readonly Route[] {
  if (routes.length < 2) return routes;
  const sorted = routes.toSorted((a, b) => a.id - b.id);
  return [...Map.groupBy(sorted, ({ way }) => way.decode).values()].flat();
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
