// A subscription on the server: created with explicit parameters that fit the publishing interval the server gives, or taken up
// again with what it has kept.
import { AgentError } from "../../../core/errors.ts";
import type { Logger } from "../../../core/runtime.ts";
import type { OpcuaOptions } from "../config/options.ts";
import { orRefused, statusOf } from "../session/failure.ts";
import type { Link } from "../session/link.ts";
import type { Resumption, SubscriptionRecord } from "../session/resumption.ts";
import type { ServerFacts } from "../session/server-facts.ts";
import type { Ua } from "../session/stack.ts";
import type { Positions } from "./positions.ts";

export interface Subscription extends SubscriptionRecord {
  /** Number of the first notification message; undefined when the subscription was taken up and nobody knows. */
  readonly firstSequence: number | undefined;
  readonly origin: "new" | "kept" | "transferred";
  /** What was asked for. */
  readonly wanted: Counts;
  /**
   * The subscription of an earlier session, moved to this one to hand over what it has kept. It is not gone on with:
   * servers were seen that sample nothing any more for a subscription whose session is closed.
   */
  readonly former: Former | undefined;
}

/** A subscription that hands over what it has kept. */
export interface Former extends SubscriptionRecord {
  /** Numbers of the messages that the server says it has. */
  readonly available: readonly number[];
}

/** What subscriptions are obtained with. */
export interface Obtaining extends Creating {
  readonly resumption: Resumption;
  readonly positions: Positions;
  readonly log: Logger;
}

/** What to ask a server for. */
export function requestedCounts({ subscription }: OpcuaOptions, publishingMs: number): Counts {
  const keepAliveCount = Math.max(3, Math.ceil(subscription.keepAlive / publishingMs));
  const lifetimeCount = Math.max(3 * keepAliveCount, Math.ceil(subscription.lifetime / publishingMs));
  return { publishingMs, keepAliveCount, lifetimeCount };
}

/** Values to keep of an item that is sampled whenever it changes. */
const unsteady = 100;

/** Values to keep for one item, so that neither a publishing interval nor an interruption of `bridge` overwrites one. */
export function queueSize({ subscription }: OpcuaOptions, everyMs: number, publishingMs: number): number {
  if (subscription.queue !== "auto") return subscription.queue;
  if (everyMs === 0) return unsteady;
  const samples = Math.max(1, everyMs);
  const needed = Math.max(2 * Math.ceil(publishingMs / samples) + 2, Math.ceil(subscription.bridge / samples));
  return Math.min(1_000, Math.max(2, needed));
}

/** Longest silence of a healthy server, with room for a slow network. */
export function silenceLimitMs({ keepAliveCount, publishingMs }: Counts): number {
  return (keepAliveCount + 2) * publishingMs + 5_000;
}

/** Why there is no subscription: the server has the service not, or all that it gives are taken. */
export type NoSubscription = "unsupported" | "taken";

/**
 * The subscription of the record for this group where its session goes on, too, and everything in it still means the same;
 * else a new one, with the former beside it where the server moves it; else why there is none.
 */
export async function obtainSubscription(
  obtaining: Obtaining,
  group: string,
  publishingMs: number,
  signal: AbortSignal,
): Promise<Subscription | NoSubscription> {
  const record = obtaining.resumption.subscriptions.find((each) => each.group === group);
  const taken = record && (await takeUp(obtaining, record, signal));
  if (record && taken?.origin === "kept") {
    const firstSequence = obtaining.positions.next(record);
    // There may be more of them than when it began.
    const namespaces = [...obtaining.facts.namespaces];
    const wanted = obtaining.counts(publishingMs);
    return { ...record, namespaces, firstSequence, origin: "kept", wanted, former: undefined };
  }
  const created = await createIfAny(obtaining, group, publishingMs, signal);
  if (!taken) return created;
  if (typeof created === "string") {
    // The former one takes the place that is wanted: what it has kept is missing then, as after any interruption.
    await deleteSubscription(obtaining.ua, obtaining.link, taken.former.id, signal).catch(() => {});
    signal.throwIfAborted();
    return await createIfAny(obtaining, group, publishingMs, signal);
  }
  return { ...created, nextHandle: taken.former.nextHandle, origin: "transferred", former: taken.former };
}

/** Subscriptions of the record that no group goes on with, as far as the server has them: they hand over what they kept. */
export async function handedOver(
  obtaining: Obtaining,
  groups: readonly string[],
  signal: AbortSignal,
): Promise<Former[]> {
  const orphans = obtaining.resumption.subscriptions.filter(({ group }) => !groups.includes(group));
  const formers: Former[] = [];
  for (const orphan of orphans) {
    const taken = await takeUp(obtaining, orphan, signal);
    if (taken) formers.push(taken.former);
  }
  return formers;
}

interface TakenUp {
  readonly origin: "kept" | "transferred";
  readonly former: Former;
}

async function takeUp(
  { ua, link, facts, log }: Obtaining,
  record: SubscriptionRecord,
  signal: AbortSignal,
): Promise<TakenUp | undefined> {
  const { id, started, namespaces } = record;
  const same = started === facts.started && namespaces.every((uri, i) => facts.namespaces[i] === uri);
  const gone = () => log.info({ subscription: id }, "the former subscription is gone");
  // Who cannot tell a restarted server from the same one must not ask for a subscription by its number.
  if (!same || (!link.resumed && facts.started === "")) {
    if (link.resumed) await deleteSubscription(ua, link, id, signal).catch(() => {});
    gone();
    return undefined;
  }
  if (link.resumed) {
    const request = new ua.SetPublishingModeRequest({ publishingEnabled: true, subscriptionIds: [id] });
    const results = await orRefused(
      link.call(request, ua.SetPublishingModeResponse, signal).then((answer) => answer.results),
      signal,
    );
    if (results?.[0]?.isGoodish()) {
      link.subscriptions.add(id);
      // One that had hardly begun hands over what it has, and another begins: what was missing before it nobody has noted.
      return { origin: record.begun ? "kept" : "transferred", former: { ...record, available: [] } };
    }
    // Of a server without that service it may be there, and would answer publish requests that are meant for the new one.
    if (!results) await deleteSubscription(ua, link, id, signal).catch(() => {});
    gone();
    return undefined;
  }
  const request = new ua.TransferSubscriptionsRequest({ subscriptionIds: [id], sendInitialValues: false });
  const result = await orRefused(
    link.call(request, ua.TransferSubscriptionsResponse, signal).then(({ results }) => results?.[0]),
    signal,
  );
  if (result?.statusCode.isGoodish()) {
    link.subscriptions.add(id);
    return { origin: "transferred", former: { ...record, available: result.availableSequenceNumbers ?? [] } };
  }
  if (result?.statusCode.name !== "BadSubscriptionIdInvalid")
    log.info({ status: result?.statusCode.name }, "the server does not move subscriptions to another session");
  gone();
  return undefined;
}

async function createIfAny(...args: Parameters<typeof createSubscription>): Promise<Subscription | NoSubscription> {
  try {
    return await createSubscription(...args);
  } catch (error) {
    const status = statusOf(error) ?? "";
    if (status === "BadTooManySubscriptions") return "taken";
    if (["BadServiceUnsupported", "BadNotImplemented"].includes(status)) return "unsupported";
    throw error;
  }
}

/** Rejects with `SOURCE_*` when the server cannot be asked. */
export async function deleteSubscription(ua: Ua, link: Link, id: number, signal: AbortSignal): Promise<void> {
  const request = new ua.DeleteSubscriptionsRequest({ subscriptionIds: [id] });
  await link.call(request, ua.DeleteSubscriptionsResponse, signal);
  link.subscriptions.delete(id);
}

export interface Counts {
  readonly publishingMs: number;
  readonly keepAliveCount: number;
  readonly lifetimeCount: number;
}

/** What subscriptions are created with. */
export interface Creating {
  readonly ua: Ua;
  readonly link: Link;
  readonly facts: ServerFacts;
  /** What to ask for at a publishing interval. */
  readonly counts: (publishingMs: number) => Counts;
}

/** Most readings in one notification message: bounds what may be on its way when the agent stops asking. */
const mostPerMessage = 5_000;

/** Rejects with `SOURCE_*` where the server refuses or cannot be asked. */
export async function createSubscription(
  { ua, link, facts, counts }: Creating,
  group: string,
  publishingMs: number,
  signal: AbortSignal,
) {
  const wanted = counts(publishingMs);
  const request = new ua.CreateSubscriptionRequest({
    ...requestedParameters(wanted),
    publishingEnabled: true,
  });
  const answer = await link.call(request, ua.CreateSubscriptionResponse, signal);
  link.subscriptions.add(answer.subscriptionId);
  if (!(answer.revisedPublishingInterval > 0) || !(answer.revisedMaxKeepAliveCount > 0))
    throw new AgentError("SOURCE_PROTOCOL", "the server revised the subscription to intervals of zero");
  const { subscriptionId: id } = answer;
  const given = await fitCounts({ ua, link, counts }, id, countsIn(answer), wanted, signal);
  return {
    id,
    group,
    wanted,
    ...given,
    started: facts.started,
    namespaces: [...facts.namespaces],
    nextHandle: 1,
    items: [],
    begun: false,
    firstSequence: 1,
    origin: "new" as const,
    former: undefined,
  };
}

/**
 * Asks for other counts where the server revised the publishing interval: they count intervals, so at 25 s instead of 100 ms a
 * lifetime of 30 min would become 125 h, and a keep-alive of 10 s would come after 42 min. A server that refuses keeps its own.
 */
async function fitCounts(
  { ua, link, counts }: Pick<Creating, "ua" | "link" | "counts">,
  subscriptionId: number,
  given: Counts,
  wanted: Counts,
  signal: AbortSignal,
): Promise<Counts> {
  const fitting = counts(given.publishingMs);
  if (given.publishingMs === wanted.publishingMs) return given;
  const request = new ua.ModifySubscriptionRequest({ subscriptionId, ...requestedParameters(fitting) });
  const answer = await orRefused(link.call(request, ua.ModifySubscriptionResponse, signal), signal);
  return answer && answer.revisedPublishingInterval > 0 && answer.revisedMaxKeepAliveCount > 0
    ? countsIn(answer)
    : given;
}

function requestedParameters({ publishingMs, keepAliveCount, lifetimeCount }: Counts) {
  return {
    requestedPublishingInterval: publishingMs,
    requestedMaxKeepAliveCount: keepAliveCount,
    requestedLifetimeCount: lifetimeCount,
    maxNotificationsPerPublish: mostPerMessage,
    priority: 0,
  };
}

interface RevisedParameters {
  readonly revisedPublishingInterval: number;
  readonly revisedMaxKeepAliveCount: number;
  readonly revisedLifetimeCount: number;
}

function countsIn(answer: RevisedParameters): Counts {
  const { revisedPublishingInterval, revisedMaxKeepAliveCount, revisedLifetimeCount } = answer;
  return {
    publishingMs: revisedPublishingInterval,
    keepAliveCount: revisedMaxKeepAliveCount,
    lifetimeCount: revisedLifetimeCount,
  };
}
