// Creates a subscription with explicit parameters that fit the publishing interval the server gives.
import { AgentError } from "../../../core/errors.ts";
import { orRefused } from "../session/failure.ts";
import type { Link } from "../session/link.ts";
import type { ServerFacts } from "../session/server-facts.ts";
import type { Ua } from "../session/stack.ts";

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
