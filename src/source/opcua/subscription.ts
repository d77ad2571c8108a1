// A subscription on the server: created with explicit parameters, or taken up again with what it has kept.
import { AgentError } from "../../core/errors.ts";
import type { Logger } from "../../core/runtime.ts";
import { refusalOf, statusOf } from "./failure.ts";
import type { Link } from "./link.ts";
import type { OpcuaOptions } from "./options.ts";
import type { Resumption, SubscriptionRecord } from "./resumption.ts";
import type { ServerFacts } from "./server-facts.ts";
import type { Ua } from "./stack.ts";

export interface Subscription extends SubscriptionRecord {
  /** Number of the first notification message; undefined when the subscription was taken up and nobody knows. */
  readonly firstSequence: number | undefined;
  readonly origin: "new" | "kept" | "transferred";
  /**
   * The subscription of an earlier session, moved to this one to hand over what it has kept. It is not gone on with:
   * servers were seen that sample nothing any more for a subscription whose session is closed.
   */
  readonly former: Pick<SubscriptionRecord, "id" | "items"> | undefined;
}

/** Most readings in one notification message: bounds what may be on its way when the agent stops asking. */
const mostPerMessage = 5_000;

export interface Counts {
  readonly publishingMs: number;
  readonly keepAliveCount: number;
  readonly lifetimeCount: number;
}

/** What to ask a server for. `everyMs`: the shortest sampling interval. */
export function requestedCounts({ subscription }: OpcuaOptions, everyMs: number): Counts {
  const publishingMs = subscription.publishing ?? Math.min(1_000, Math.max(100, everyMs));
  const keepAliveCount = Math.max(3, Math.ceil(subscription.keepAlive / publishingMs));
  const lifetimeCount = Math.max(3 * keepAliveCount, Math.ceil(subscription.lifetime / publishingMs));
  return { publishingMs, keepAliveCount, lifetimeCount };
}

/** Values to keep for one item, so that neither a publishing interval nor an interruption of `bridge` overwrites one. */
export function queueSize({ subscription }: OpcuaOptions, everyMs: number, publishingMs: number): number {
  if (subscription.queue !== "auto") return subscription.queue;
  const samples = Math.max(1, everyMs);
  const needed = Math.max(2 * Math.ceil(publishingMs / samples) + 2, Math.ceil(subscription.bridge / samples));
  return Math.min(1_000, Math.max(2, needed));
}

/** Longest silence of a healthy server, with room for a slow network. */
export function silenceLimitMs({ keepAliveCount, publishingMs }: Counts): number {
  return (keepAliveCount + 2) * publishingMs + 5_000;
}

/** As `obtainSubscription`; undefined where the server has no subscriptions to give. */
export async function subscriptionIfAny(
  ...args: Parameters<typeof obtainSubscription>
): Promise<Subscription | undefined> {
  try {
    return await obtainSubscription(...args);
  } catch (error) {
    if (!["BadServiceUnsupported", "BadTooManySubscriptions", "BadNotImplemented"].includes(statusOf(error) ?? ""))
      throw error;
    return undefined;
  }
}

/**
 * The subscription of the record where its session goes on, too, and everything in it still means the same; else a new
 * one, with the former beside it where the server moves it.
 */
async function obtainSubscription(
  ua: Ua,
  link: Link,
  facts: ServerFacts,
  resumption: Resumption,
  wanted: Counts,
  log: Logger,
  signal: AbortSignal,
): Promise<Subscription> {
  const former = resumption.subscription;
  if (former) {
    const same =
      former.started === facts.started && JSON.stringify(former.namespaces) === JSON.stringify(facts.namespaces);
    // Who cannot tell a restarted server from the same one must not ask for a subscription by its number.
    const certain = same && (link.resumed || facts.started !== "");
    const origin = certain ? await takeUp(ua, link, former, resumption, log, signal) : undefined;
    if (origin === "kept") return { ...former, firstSequence: undefined, origin, former: undefined };
    if (!certain && link.resumed) await deleteSubscription(ua, link, former.id, signal).catch(() => {});
    if (!origin) log.info({ subscription: former.id }, "the former subscription is gone");
    const created = await create(ua, link, facts, wanted, signal);
    return origin ? { ...created, nextHandle: former.nextHandle, origin, former } : created;
  }
  return create(ua, link, facts, wanted, signal);
}

async function takeUp(
  ua: Ua,
  link: Link,
  { id }: SubscriptionRecord,
  resumption: Resumption,
  log: Logger,
  signal: AbortSignal,
): Promise<"kept" | "transferred" | undefined> {
  if (link.resumed) {
    const request = new ua.SetPublishingModeRequest({ publishingEnabled: true, subscriptionIds: [id] });
    const { results } = await link.call(request, ua.SetPublishingModeResponse, signal);
    return results?.[0]?.isGoodish() ? "kept" : undefined;
  }
  const request = new ua.TransferSubscriptionsRequest({ subscriptionIds: [id], sendInitialValues: false });
  const status = await link
    .call(request, ua.TransferSubscriptionsResponse, signal)
    .then(({ results }) => results?.[0]?.statusCode)
    .catch((error: unknown) => {
      signal.throwIfAborted();
      if (refusalOf(error) === undefined) throw error;
      return undefined;
    });
  if (status?.isGoodish()) return "transferred";
  if (status?.name !== "BadSubscriptionIdInvalid") {
    log.info({ status: status?.name }, "the server does not move subscriptions to another session");
    await resumption.remember({ transferRefused: true });
  }
  return undefined;
}

async function create(
  ua: Ua,
  link: Link,
  facts: ServerFacts,
  wanted: Counts,
  signal: AbortSignal,
): Promise<Subscription> {
  const request = new ua.CreateSubscriptionRequest({
    requestedPublishingInterval: wanted.publishingMs,
    requestedMaxKeepAliveCount: wanted.keepAliveCount,
    requestedLifetimeCount: wanted.lifetimeCount,
    maxNotificationsPerPublish: mostPerMessage,
    publishingEnabled: true,
    priority: 0,
  });
  const answer = await link.call(request, ua.CreateSubscriptionResponse, signal);
  if (!(answer.revisedPublishingInterval > 0) || !(answer.revisedMaxKeepAliveCount > 0))
    throw new AgentError("SOURCE_PROTOCOL", "the server revised the subscription to intervals of zero");
  return {
    id: answer.subscriptionId,
    publishingMs: answer.revisedPublishingInterval,
    keepAliveCount: answer.revisedMaxKeepAliveCount,
    lifetimeCount: answer.revisedLifetimeCount,
    started: facts.started,
    namespaces: [...facts.namespaces],
    nextHandle: 1,
    items: [],
    firstSequence: 1,
    origin: "new",
    former: undefined,
  };
}

/** Rejects with `SOURCE_*` when the server cannot be asked. */
export async function deleteSubscription(ua: Ua, link: Link, id: number, signal: AbortSignal): Promise<void> {
  const request = new ua.DeleteSubscriptionsRequest({ subscriptionIds: [id] });
  await link.call(request, ua.DeleteSubscriptionsResponse, signal);
}
