// Creates a subscription suited to the server's publishing interval, or resumes one with its kept messages.
import type { Logger } from "../../../core/runtime.ts";
import type { Link, ServiceResponse } from "../session/link.ts";
import type { Resumption, SubscriptionRecord } from "../session/resumption.ts";
import type { ServerFacts } from "../session/server-facts.ts";
import { orRefused, statusOf } from "../stack/failure.ts";
import type { Positions } from "./positions.ts";
import type { Counts } from "./publishing-group.ts";

export interface Subscription extends SubscriptionRecord {
  /** Number of the first notification message. Undefined: a resumed subscription whose number is unknown. */
  readonly firstSequence: number | undefined;
  readonly origin: "new" | "kept" | "transferred";
  /** The requested parameters. */
  readonly wanted: Counts;
  /** A transferred subscription with kept messages. Not continued: some servers stop sampling after the session. */
  readonly former: Former | undefined;
}

/** A subscription that only delivers its kept messages. */
export interface Former extends SubscriptionRecord {
  /** Numbers of the messages that the server reports to have. */
  readonly available: readonly number[];
}

export interface Obtaining {
  readonly link: Link;
  readonly facts: ServerFacts;
  readonly counts: (publishingMs: number) => Counts;
  readonly resumption: Resumption;
  readonly positions: Positions;
  readonly log: Logger;
}

/** The server does not support subscriptions, or all are taken. */
export type NoSubscription = "unsupported" | "taken";

/** Most values in a message: bounds the readings in flight when the agent stops requesting. */
const mostPerMessage = 5_000;
/** A message that is too large has fewer values from then on, by this factor. */
const shrinking = 8;

/**
 * Continues the recorded subscription of a group if its session was resumed and the server still means the same nodes.
 * Otherwise creates one, and transfers the old one if possible. Rejects with `SOURCE_*`.
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
    // The server may have added namespaces, and adds more.
    const { namespaces } = obtaining.facts;
    const wanted = obtaining.counts(publishingMs);
    // The configuration may have changed since. Servers that revised the counts are asked again at each connection.
    const asked = obtaining.counts(record.publishingMs);
    const isSame = asked.keepAliveCount === record.keepAliveCount && asked.lifetimeCount === record.lifetimeCount;
    const given = isSame ? record : await modify(obtaining, record, signal);
    return { ...record, ...given, namespaces, firstSequence, origin: "kept", wanted, former: undefined };
  }
  const created = await create(obtaining, group, publishingMs, signal);
  if (!taken) return created;
  if (typeof created === "string") {
    // The old subscription occupies the last slot. Delete it; its kept messages are lost and become a gap.
    await deleteSubscription(obtaining.link, taken.former.id, signal).catch(() => {});
    signal.throwIfAborted();
    return await create(obtaining, group, publishingMs, signal);
  }
  return { ...created, nextHandle: taken.former.nextHandle, origin: "transferred", former: taken.former };
}

/** Resumes or transfers recorded subscriptions that no group continues, to fetch their kept messages. */
export async function handedOver(
  obtaining: Obtaining,
  groups: readonly string[],
  signal: AbortSignal,
): Promise<Former[]> {
  const formers: Former[] = [];
  for (const orphan of obtaining.resumption.subscriptions) {
    const taken = groups.includes(orphan.group) ? undefined : await takeUp(obtaining, orphan, signal);
    if (taken) formers.push(taken.former);
  }
  return formers;
}

interface TakenUp {
  readonly origin: "kept" | "transferred";
  readonly former: Former;
}

async function takeUp(
  { link, facts, log }: Obtaining,
  record: SubscriptionRecord,
  signal: AbortSignal,
): Promise<TakenUp | undefined> {
  const { id, started, namespaces } = record;
  const same = started === facts.started && namespaces.every((uri, i) => facts.namespaces[i] === uri);
  const takenUp = (origin: TakenUp["origin"], available: readonly number[]): TakenUp => {
    link.subscriptions.add(id);
    return { origin, former: { ...record, available } };
  };
  if (link.resumed) {
    const request = { publishingEnabled: true, subscriptionIds: [id] };
    const answer = same ? await orRefused(link.call("SetPublishingMode", request, signal), signal) : undefined;
    // A subscription that had not begun counts as transferred, because no record says what was missing before it.
    if (answer?.results?.[0]?.isGoodish()) return takenUp(record.begun ? "kept" : "transferred", []);
    // The subscription means other nodes now, or the service is missing. It would take answers meant for the new one.
    if (!answer?.results) await deleteSubscription(link, id, signal).catch(() => {});
    // Without a start time, a restarted server cannot be detected, and the id may belong to another client.
  } else if (same && facts.started !== "") {
    const request = { subscriptionIds: [id], sendInitialValues: false };
    const answer = await orRefused(link.call("TransferSubscriptions", request, signal), signal);
    const result = answer?.results?.[0];
    if (result?.statusCode.isGoodish()) return takenUp("transferred", result.availableSequenceNumbers ?? []);
    if (result?.statusCode.name !== "BadSubscriptionIdInvalid")
      log.info({ status: result?.statusCode.name }, "the server does not move subscriptions to another session");
  }
  log.info({ subscription: id }, "the former subscription is gone");
  return undefined;
}

async function create(
  obtaining: Obtaining,
  group: string,
  publishingMs: number,
  signal: AbortSignal,
): Promise<Subscription | NoSubscription> {
  const { link, facts, counts } = obtaining;
  const wanted = counts(publishingMs);
  const request = { ...requestedParameters(wanted), publishingEnabled: true };
  let answer: ServiceResponse<"CreateSubscription">;
  try {
    answer = await link.call("CreateSubscription", request, signal);
  } catch (error) {
    const status = statusOf(error) ?? "";
    if (status === "BadTooManySubscriptions") return "taken";
    if (["BadServiceUnsupported", "BadNotImplemented"].includes(status)) return "unsupported";
    throw error;
  }
  const { subscriptionId: id } = answer;
  link.subscriptions.add(id);
  let given = countsIn(answer, wanted);
  if (given.publishingMs !== publishingMs) {
    // Both counts are multiples of the interval. With 25 s instead of 100 ms, a lifetime of 30 min would become 125 h,
    // and a keep-alive of 10 s 42 min.
    given = await modify(obtaining, { ...given, id }, signal);
  }
  const { started, namespaces } = facts;
  const record = { id, group, ...given, started, namespaces, nextHandle: 1, items: [], begun: false };
  return { ...record, wanted, firstSequence: 1, origin: "new", former: undefined };
}

/** Requests the configured counts for the interval of a subscription. Returns the present ones if refused. */
async function modify(
  { link, counts }: Obtaining,
  { id: subscriptionId, publishingMs, keepAliveCount, lifetimeCount }: Counts & { readonly id: number },
  signal: AbortSignal,
): Promise<Counts> {
  const request = { subscriptionId, ...requestedParameters(counts(publishingMs)) };
  const modified = await orRefused(link.call("ModifySubscription", request, signal), signal);
  const present = { publishingMs, keepAliveCount, lifetimeCount };
  return modified ? countsIn(modified, present) : present;
}

/** Asks for messages with fewer values than `most`. Returns how many; `most` if one is the least, or if refused. */
export async function shrinkMessages(
  link: Link,
  subscriptions: readonly (Counts & { readonly id: number })[],
  signal: AbortSignal,
  most = mostPerMessage,
): Promise<number> {
  const fewer = Math.ceil(most / shrinking);
  for (const { id: subscriptionId, ...counts } of subscriptions) {
    const request = { subscriptionId, ...requestedParameters(counts), maxNotificationsPerPublish: fewer };
    if (!(await orRefused(link.call("ModifySubscription", request, signal), signal))) return most;
  }
  return fewer;
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

/** The revised parameters. Zero is no interval: some servers leave out what they have not revised. */
function countsIn(answer: ServiceResponse<"CreateSubscription" | "ModifySubscription">, requested: Counts): Counts {
  return {
    publishingMs: answer.revisedPublishingInterval > 0 ? answer.revisedPublishingInterval : requested.publishingMs,
    keepAliveCount: answer.revisedMaxKeepAliveCount || requested.keepAliveCount,
    lifetimeCount: answer.revisedLifetimeCount || requested.lifetimeCount,
  };
}

/** Rejects with `SOURCE_*` if the connection fails. */
export async function deleteSubscription(link: Link, id: number, signal: AbortSignal): Promise<void> {
  await link.call("DeleteSubscriptions", { subscriptionIds: [id] }, signal);
  link.subscriptions.delete(id);
}
