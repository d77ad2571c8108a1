// Brings the broker's subscriptions in line with the configuration.
import type { Logger } from "../../../core/runtime.ts";
import { brokerLimits, packetsOf, refusalOf } from "./broker-limits.ts";
import type { MqttConnection, SubscribeOptions } from "./client.ts";
import { minimalCover } from "./filter-cover.ts";
import { describeReason } from "./reason-code.ts";
import type { SessionState } from "./session-state.ts";

export interface SubscriptionOptions {
  readonly qos: 0 | 1 | 2;
  /** Whether any tag may use retained messages. */
  readonly retained: boolean;
  /** Filters that the session at the broker has already. */
  readonly inSession: readonly string[];
  /** Filters, besides `wanted`, whose retained messages are wanted again at each connection. */
  readonly repeated: readonly string[];
}

/** What the broker said, by filter. */
export interface Subscriptions {
  readonly granted: readonly string[];
  /** Refused filters with the broker's reason code. */
  readonly refused: ReadonlyMap<string, number>;
  /** Granted filters whose messages the broker does not keep until they are acknowledged, although it was asked to. */
  readonly unprotected: readonly string[];
}

/**
 * Subscribes the fewest filters that cover `wanted` and unsubscribes what the session has from before. Where a wide
 * filter is refused, the narrower ones it stood for are tried. Rejects when the connection is lost.
 */
export async function applySubscriptions(
  connection: MqttConnection,
  wanted: readonly string[],
  options: SubscriptionOptions,
  state: SessionState,
  log: Logger,
): Promise<Subscriptions> {
  const inSession = new Set(options.inSession);
  const limits = brokerLimits(connection.limits);
  const granted = new Set<string>();
  const refused = new Map<string, number>();
  const unprotected = new Set<string>();
  const refuse = (filter: string, code: number) => {
    refused.set(filter, code);
    log.error({ filter, reason: describeReason(code) }, "the broker refused a subscription");
  };
  for (const filter of new Set([...options.repeated, ...wanted])) {
    const code = refusalOf(filter, limits);
    if (code !== undefined) refuse(filter, code);
  }
  const ask = async (filters: readonly string[], how: HowToSubscribe) => {
    // Before the broker knows them: after a crash in between they are still found and unsubscribed one day.
    await state.remember({ filters: [...new Set([...inSession, ...granted, ...filters])] });
    for (const [filter, code] of await subscribe(connection, filters, how)) {
      if (code >= 0x80) refuse(filter, code);
      else {
        granted.add(filter);
        if (code === 0 && how.qos > 0) unprotected.add(filter);
      }
    }
  };
  const repeated = options.repeated.filter((filter) => !refused.has(filter));
  if (repeated.length > 0) await ask(repeated, { qos: options.qos, inSession: [], retainHandling: 0 });
  for (;;) {
    const open = wanted.filter((filter) => !refused.has(filter));
    const next = minimalCover(open).filter((filter) => !granted.has(filter));
    if (next.length === 0) break;
    await ask(next, { ...options, retainHandling: options.retained ? 1 : 2 });
  }
  const stale = [...inSession].filter((filter) => !granted.has(filter) && !refused.has(filter));
  for (const filters of packetsOf(stale, limits)) await connection.unsubscribe(filters);
  if (stale.length > 0) log.info({ filters: stale.length }, "subscriptions no longer configured were ended");
  if (unprotected.size > 0)
    log.warn(
      { filters: [...unprotected].slice(0, 10) },
      "the broker grants these subscriptions with QoS 0 only: it keeps nothing for us",
    );
  await state.remember({ filters: [...granted] });
  return { granted: [...granted], refused, unprotected: [...unprotected] };
}

interface HowToSubscribe extends SubscribeOptions {
  readonly inSession: readonly string[];
}

async function subscribe(
  connection: MqttConnection,
  filters: readonly string[],
  { qos, inSession, retainHandling }: HowToSubscribe,
): Promise<[string, number][]> {
  // Subscribing again shows whether it is still granted. Before MQTT 5 it would bring all retained messages again.
  const have = new Set(connection.protocolVersion === 5 ? [] : inSession);
  const answers = filters.filter((filter) => have.has(filter)).map((filter): [string, number] => [filter, qos]);
  const missing = filters.filter((filter) => !have.has(filter));
  for (const packets of chunks(packetsOf(missing, brokerLimits(connection.limits)), packetsInFlight)) {
    const codes = await Promise.all(packets.map((some) => connection.subscribe(some, { qos, retainHandling })));
    for (const [i, some] of packets.entries())
      for (const [j, filter] of some.entries()) answers.push([filter, codes[i]?.[j] ?? unanswered]);
  }
  return answers;
}

const packetsInFlight = 16;
/** Unspecified error: the code of a filter that the broker passed over. */
const unanswered = 0x80;

function chunks<T>(all: readonly T[], size: number): T[][] {
  return Array.from({ length: Math.ceil(all.length / size) }, (_, i) => all.slice(i * size, (i + 1) * size));
}
