// Topic → the tags that want its messages and what their templates capture, remembered by topic.
import type { Captures, TagId } from "../../../core/source.ts";
import type { MqttTag } from "../config/tag.ts";
import { type TagAddress, tagPattern } from "../config/tag-address.ts";
import type { Decoder } from "../decoders/decoder.ts";
import type { ScopeCaptures } from "../topics/sparkplug-topic.ts";
import { maxTopic, TopicTrie } from "../topics/topic-trie.ts";
import type { NameTable } from "./name-tables.ts";

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

/** How messages are read for a tag: the same object for all tags that are read alike. */
type Way = Pick<Subscriber, "address" | "decode" | "scoped">;

/** A subscriber without what it shares with others. */
interface LeanSubscriber extends Pick<Subscriber, "id" | "tag"> {
  readonly way: Way;
}

/** Kept small: there is one for each topic. */
class TopicRoute implements Route {
  readonly id: TagId;
  readonly tag: MqttTag;
  readonly captures: Captures;
  readonly from: string;
  readonly device: string | undefined;
  elements?: Map<string, Element | undefined>;
  nameTable?: NameTable;
  readonly #way: Way;

  constructor({ id, tag, way }: LeanSubscriber, captures: Captures, from: string, device: string | undefined) {
    this.id = id;
    this.tag = tag;
    this.#way = way;
    this.captures = captures;
    this.from = from;
    this.device = device;
  }

  get address(): TagAddress {
    return this.#way.address;
  }

  get decode(): Decoder {
    return this.#way.decode;
  }

  get scoped(): ScopeCaptures | undefined {
    return this.#way.scoped;
  }
}

/** Of topics that capture nothing. */
const noCaptures: Captures = {};
const noRoutes: readonly Route[] = [];
/** Ways that a new one is compared with, and names of devices that are kept for those that are the same. */
const mostCompared = 64;
const mostDevices = 4_096;

/** Finds and remembers routes. Of topics not seen lately it forgets, so that topics without end cost no memory. */
export class TopicRouter {
  /** By the one topic that they are for; an array where several tags want the same. */
  readonly #fixed = new Map<string, TopicRoute | readonly TopicRoute[]>();
  /** Of filters with wildcards. Undefined: there are none. */
  readonly #patterns: TopicTrie<LeanSubscriber> | undefined;
  readonly #devices = new Map<string, string>();
  readonly #remembered: number;
  // Two generations: when the young one is full, what was not used since it began is forgotten.
  #young = new Map<string, TopicRoute | readonly Route[]>();
  #old = new Map<string, TopicRoute | readonly Route[]>();

  /** `remembered`: how many topics at least, beside those that tags name in full. */
  constructor(subscribers: Iterable<Subscriber>, remembered: number) {
    this.#remembered = remembered;
    const ways = new Ways();
    for (const { id, tag, ...way } of subscribers) {
      const subscriber = { id, tag, way: ways.shared(way) };
      const pattern = tagPattern(tag);
      if (/[+#]/.test(pattern)) (this.#patterns ??= new TopicTrie()).insert(pattern, subscriber);
      else
        this.#addFixed(pattern, new TopicRoute(subscriber, noCaptures, pattern, this.#deviceOf(subscriber, pattern)));
    }
  }

  /** Those whose payload is decoded in the same way stand together. None: no tag wants messages of this topic. */
  routes(topic: string): readonly Route[] {
    const known = this.#patterns ? (this.#young.get(topic) ?? this.#remember(topic)) : this.#fixed.get(topic);
    if (known === undefined) return noRoutes;
    return known instanceof TopicRoute ? [known] : known;
  }

  #addFixed(topic: string, route: TopicRoute): void {
    const before = this.#fixed.get(topic);
    if (before === undefined) this.#fixed.set(topic, route);
    else this.#fixed.set(topic, inGroups([...(before instanceof TopicRoute ? [before] : before), route]));
  }

  #remember(topic: string): TopicRoute | readonly Route[] {
    const routes = this.#old.get(topic) ?? this.#find(topic);
    if (topic.length > maxTopic) return routes;
    if (this.#young.size >= this.#remembered) {
      this.#old = this.#young;
      this.#young = new Map();
    }
    this.#young.set(topic, routes);
    return routes;
  }

  #find(topic: string): TopicRoute | readonly Route[] {
    const fixed = this.#fixed.get(topic) ?? [];
    const levels = topic.split("/");
    const found = (this.#patterns?.match(topic) ?? []).map((subscriber) => {
      const from = addressOf(subscriber.tag, topic);
      return new TopicRoute(subscriber, capture(subscriber.tag, levels), from, this.#deviceOf(subscriber, from));
    });
    const all = inGroups([...(fixed instanceof TopicRoute ? [fixed] : fixed), ...found]);
    // An array around one route would take half as much as the route.
    return all.length === 1 && all[0] ? all[0] : all;
  }

  /** The same text for topics of one device, as long as there are not too many of them. */
  #deviceOf({ way }: LeanSubscriber, from: string): string | undefined {
    if (!way.address.time) return undefined;
    const device = from.slice(0, Math.max(0, from.lastIndexOf("/")));
    const known = this.#devices.get(device);
    if (known !== undefined) return known;
    if (this.#devices.size < mostDevices) this.#devices.set(device, device);
    return device;
  }
}

/** In the order of the configuration, which is the order of the readings then; those that decode alike together. */
function inGroups(routes: readonly TopicRoute[]): readonly TopicRoute[] {
  if (routes.length < 2) return routes;
  const sorted = routes.toSorted((a, b) => a.id - b.id);
  return [...Map.groupBy(sorted, ({ decode }) => decode).values()].flat();
}

class Ways {
  readonly #known: Way[] = [];

  shared(way: Way): Way {
    const known = this.#known.find(
      ({ address, decode, scoped }) => address === way.address && decode === way.decode && scoped === way.scoped,
    );
    if (known) return known;
    const made = { address: way.address, decode: way.decode, scoped: way.scoped };
    if (this.#known.length < mostCompared) this.#known.push(made);
    return made;
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
  if (topic.captures.length === 0) return noCaptures;
  return Object.fromEntries(
    topic.captures.map(({ name, level, rest, apply }) => {
      const text = rest ? levels.slice(level).join("/") : (levels[level] ?? "");
      return [name, apply ? apply(text) : text];
    }),
  );
}
