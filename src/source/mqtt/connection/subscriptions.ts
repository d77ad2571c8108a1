// Updates the broker's subscriptions to match the configuration.
import type { Logger, Runtime } from "../../../core/runtime.ts";
import type { ConfigFault, Reading, TagId } from "../../../core/source.ts";
import { badReading } from "../../../lib/readings/reading-batch.ts";
import type { MqttTag } from "../config/tag.ts";
import { tagCaptures, tagFilter } from "../config/tag-address.ts";
import { coverage, identifierOf, minimalCover, overlappingFilters } from "../topics/topic-trie.ts";
import type { MqttConnection, SubscribeOptions } from "./client.ts";
import { meaningOf } from "./reason-code.ts";
import { type SessionState, subscriptionRequest } from "./session-state.ts";

interface SubscriptionOptions {
  readonly qos: 0 | 1 | 2;
  /** Filters of the tags that use retained messages. */
  readonly retained: readonly string[];
  /** Filters that the broker session already contains. */
  readonly inSession: readonly string[];
  /** Additional filters whose retained messages are needed again at each connection. */
  readonly repeated: readonly string[];
  /** Called with all filters that are granted, before others are unsubscribed. */
  readonly onGranted: (filters: readonly string[]) => void;
}

export interface Subscriptions {
  readonly granted: readonly string[];
  /** Refused filters with the broker's reason code. */
  readonly refused: ReadonlyMap<string, number>;
  /** Filters granted with QoS 0 only, so that the broker does not store their messages. */
  readonly unprotected: readonly string[];
}

/** Subscribes a minimal cover of `wanted`, and unsubscribes stale filters. Rejects if the connection is lost. */
export async function applySubscriptions(
  connection: MqttConnection,
  wanted: readonly string[],
  options: SubscriptionOptions,
  state: SessionState,
  log: Logger,
): Promise<Subscriptions> {
  const inSession = new Set(options.inSession);
  const { qos } = options;
  const asked = subscriptionRequest(qos, options.retained);
  const before = inSession.size > 0 ? state.granted(asked) : new Map<string, number>();
  // A tag that is new or uses retained messages only now needs those of filters that the session has.
  const isKnown = inSession.size === 0 || state.hasRetainedOf(asked);
  const retainHandling = options.retained.length === 0 ? 2 : isKnown ? 1 : 0;
  const limits = brokerLimits(connection.limits);
  const granted = new Set<string>();
  const refused = new Map<string, number>();
  const unprotected = new Set<string>();
  const refuse = (filter: string, code: number) => {
    refused.set(filter, code);
    log.error({ filter, reason: meaningOf(code).text }, "the broker refused a subscription");
  };
  for (const filter of new Set([...options.repeated, ...wanted])) {
    const code = expectedRefusal(filter, limits);
    if (code !== undefined) refuse(filter, code);
  }
  const repeated = options.repeated.filter((filter) => !refused.has(filter));
  const cover = () => minimalCover(wanted.filter((filter) => !refused.has(filter)));
  /** Filters that need an identifier. Before MQTT 5 there are none, and brokers rarely send a message twice. */
  const marked = (): ReadonlySet<string> => {
    if (connection.protocolVersion !== 5) return new Set();
    const overlapping = overlappingFilters([...repeated, ...cover()]);
    // All or none: brokers may send one copy with the identifiers of all its subscriptions, and a tag whose filter has none
    // would not read it.
    const room = limits.identifiers ? limits.maxPacket - identifierProperty : 0;
    if ([...overlapping].every((filter) => packetHead + sizeOf(filter) <= room)) return overlapping;
    log.warn(
      { filters: [...overlapping].slice(0, 10) },
      "the broker accepts no subscription identifiers with these filters: a message that several of these filters match may be stored once for each",
    );
    return new Set();
  };
  const note = (filter: string, code: number) => {
    if (code >= 0x80) return refuse(filter, code);
    granted.add(filter);
    if (code === 0 && qos > 0) unprotected.add(filter);
  };
  /** `known`: filters that the session has as requested, with the QoS granted. */
  const request = async (
    filters: readonly string[],
    retainHandling: SubscribeOptions["retainHandling"],
    known: ReadonlyMap<string, number>,
  ) => {
    // Saved before the request: a crash in between must leave no subscription that is never removed, and none that is
    // never requested again.
    const all = new Set([...inSession, ...granted, ...filters]);
    const unanswered = [...all].filter((filter) => !granted.has(filter) && !before.has(filter));
    await state.remember({ filters: [...all], unanswered, request: asked });
    // Renewing a subscription checks that it is still granted. Before MQTT 5 it would resend all retained messages.
    const isAsked = (filter: string) => connection.protocolVersion === 5 || !known.has(filter);
    for (const filter of filters) if (!isAsked(filter)) note(filter, known.get(filter) ?? noAnswer);
    const alone = marked();
    const requested = filters.filter(isAsked);
    const single = requested.filter((filter) => alone.has(filter)).map((filter) => [filter]);
    const together = requested.filter((filter) => !alone.has(filter));
    const packets = [...packetsOf(together, limits), ...single];
    for (let at = 0; at < packets.length; at += packetsInFlight)
      await Promise.all(
        packets.slice(at, at + packetsInFlight).map(async (some) => {
          const [first = ""] = some;
          const identifier = alone.has(first) ? identifierOf(first) : undefined;
          const codes = await connection.subscribe(some, { qos, retainHandling, identifier });
          for (const [i, filter] of some.entries()) note(filter, codes[i] ?? noAnswer);
        }),
      );
  };
  if (repeated.length > 0) await request(repeated, 0, new Map());
  for (;;) {
    const next = cover().filter((filter) => !granted.has(filter));
    if (next.length === 0) break;
    await request(next, retainHandling, before);
  }
  const stale = [...inSession].filter((filter) => !granted.has(filter) && !refused.has(filter));
  if (stale.length > 0) await state.remember({ filters: [...granted, ...stale], unanswered: stale });
  options.onGranted([...granted]);
  for (const filters of packetsOf(stale, limits)) await connection.unsubscribe(filters);
  if (stale.length > 0) log.info({ filters: stale.length }, "subscriptions no longer configured were ended");
  if (unprotected.size > 0)
    log.warn(
      { filters: [...unprotected].slice(0, 10) },
      "the broker grants these subscriptions with QoS 0 only: it keeps nothing for us",
    );
  await state.remember({ filters: [...granted], unanswered: [], unprotected: [...unprotected], request: asked });
  return { granted: [...granted], refused, unprotected: [...unprotected] };
}

const packetsInFlight = 16;
/** Unspecified error: used for a filter that the broker did not answer. */
const noAnswer = 0x80;

interface BrokerLimits {
  /** Largest packet that the broker accepts, in bytes. */
  readonly maxPacket: number;
  readonly wildcards: boolean;
  readonly shared: boolean;
  /** Subscription identifiers. */
  readonly identifiers: boolean;
}

/** Limits from the properties of CONNACK. Omitted properties mean no limit. */
export function brokerLimits(properties: Readonly<Record<string, unknown>>): BrokerLimits {
  const { maximumPacketSize } = properties;
  return {
    maxPacket: typeof maximumPacketSize === "number" ? maximumPacketSize : Number.POSITIVE_INFINITY,
    wildcards: properties["wildcardSubscriptionAvailable"] !== false,
    shared: properties["sharedSubscriptionAvailable"] !== false,
    identifiers: properties["subscriptionIdentifiersAvailable"] !== false,
  };
}

/** The reason code with which the broker would refuse this filter. Undefined: it may accept it. */
export function expectedRefusal(filter: string, { maxPacket, wildcards, shared }: BrokerLimits): number | undefined {
  if (filter.startsWith("$share/") && !shared) return sharedUnsupported;
  if (!wildcards && /[+#]/.test(filter)) return wildcardsUnsupported;
  return packetHead + sizeOf(filter) > maxPacket ? packetTooLarge : undefined;
}

const packetTooLarge = 149;
const sharedUnsupported = 158;
const wildcardsUnsupported = 162;

/** Limit of some cloud brokers for one SUBSCRIBE. */
const filtersPerPacket = 8;
/** Bytes before the first filter of SUBSCRIBE and UNSUBSCRIBE: type, length, identifier, length of properties. */
const packetHead = 1 + 4 + 2 + 1;

/** Bytes of the property with a subscription identifier: its type, and up to 4 for the number. */
const identifierProperty = 1 + 4;

/** Splits filters into packets and keeps their order. Each filter must fit into a packet. */
export function packetsOf(filters: readonly string[], { maxPacket }: BrokerLimits): string[][] {
  const packets: string[][] = [];
  let size = Number.POSITIVE_INFINITY;
  for (const filter of filters) {
    size += sizeOf(filter);
    const last = packets.at(-1);
    if (last && last.length < filtersPerPacket && size <= maxPacket) last.push(filter);
    else {
      packets.push([filter]);
      size = packetHead + sizeOf(filter);
    }
  }
  return packets;
}

/** Bytes of a filter in a packet: length prefix, text and options. */
function sizeOf(filter: string): number {
  return 2 + Buffer.byteLength(filter) + 1;
}

export const readTopicsHint = "let this user read these topics at the broker, or correct topic in the tags";

/** Tags that receive no messages because the broker refused their filter. */
export function refusedTopics(tags: readonly MqttTag[], subscriptions: Subscriptions): readonly ConfigFault[] {
  return refusedOf(tags, subscriptions).map(({ tag, topic, code }) => ({
    tag,
    field: "topic",
    message: `expected a topic that may be read, got ${meaningOf(code).text} for ${topic.text}`,
    hint: readTopicsHint,
  }));
}

/** Readings that show refused filters under their tags. A tag with captures has no input to show them under. */
export function refusals(
  tags: readonly MqttTag[],
  subscriptions: Subscriptions,
  { clock }: Pick<Runtime, "clock">,
): readonly Reading[] {
  const time = clock.now();
  return refusedOf(tags, subscriptions).flatMap(({ tag, topic, code, captures }): Reading[] => {
    if (captures) return [];
    const place = { tag, captures: {}, address: topic.text, time };
    return [{ ...badReading(place, `the broker refused the subscription: ${meaningOf(code).text}`), wholeTag: true }];
  });
}

function refusedOf(tags: readonly MqttTag[], { granted, refused }: Subscriptions) {
  const arrives = coverage(granted);
  return tags.flatMap((tag, index) => {
    const filter = tagFilter(tag);
    if (arrives(filter)) return [];
    const captures = tagCaptures(tag).length > 0;
    // a TagId is the index of its tag
    return [{ tag: index as TagId, topic: tag.topic, code: refused.get(filter) ?? noAnswer, captures }];
  });
}
