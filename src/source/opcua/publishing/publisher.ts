// Sends Publish requests, tracks the notifications, and detects a silent server. Messages are acknowledged once their
// readings are on disk; until then the server keeps them for Republish, also for a later connection (OPC 10000-4, 5.14.5).
import type { NotificationMessage, PublishResponse } from "node-opcua-client";
import { AgentError } from "../../../core/errors.ts";
import { orAbort } from "../../../lib/flow/abort.ts";
import { sessionGone } from "../session/link.ts";
import { attributes } from "../session/services.ts";
import { isUnreadable, statusOf } from "../stack/failure.ts";
import {
  FormerSubscription,
  type MissingMessagesOptions,
  missingMessages,
  SequenceTracker,
} from "./missing-messages.ts";
import { type Acknowledgement, type Notification, readNotification } from "./notification.ts";
import { type Counts, silenceLimitMs } from "./publishing-group.ts";
import { deleteSubscription, type Former, type Subscription } from "./subscription.ts";

type Published = Counts & Pick<Subscription, "id" | "firstSequence" | "origin">;

export interface PublisherOptions extends Omit<MissingMessagesOptions, "trackers" | "deliver"> {
  /** `lags`: see `Positions.lags`. */
  readonly subscriptions: readonly (Published & { readonly lags: boolean })[];
  /** Former subscriptions, which deliver the messages that they kept and are then deleted. */
  readonly formers: readonly Pick<Former, "id" | "available">[];
  /** Receives each message once, in order. The next one follows after it resolves. */
  readonly deliver: (notification: Notification, signal: AbortSignal) => Promise<void>;
  /** Called when the server has sent all that changed in a subscription. */
  readonly alive: (subscription: number) => void;
  /** Called if a message cannot be received, with the reason. It is then missing. */
  readonly unreadable: (error: unknown) => void;
  /** Called if the server no longer has it; the next connection must not try to resume it. */
  readonly gone: (what: "session" | "subscriptions" | number) => Promise<void>;
}

/** Requests in flight beyond one per subscription: covers a round trip of several publishing intervals. */
const spareRequests = 3;
/** Some servers answer every request with a time-out at once. */
const afterTimeoutMs = 1_000;
/** Deadline for the answer of a server that has been silent for long. */
const answerWithinMs = 5_000;
/** NodeId of Server_ServerStatus_State. */
const serverState = 2259;

export function openPublisher(options: PublisherOptions) {
  const { link, runtime, subscriptions, room, alive, lost, gone } = options;
  const { clock, log } = runtime;
  const formers: ReadonlyMap<number, FormerSubscription> = new Map(
    options.formers.map(({ id }) => [id, new FormerSubscription()]),
  );
  const trackers = new Map([
    ...subscriptions.map(({ id, firstSequence, lags }) => [id, new SequenceTracker(firstSequence, lags)] as const),
    ...options.formers.map(({ id }) => [id, new SequenceTracker(undefined)] as const),
  ]);
  const missing = missingMessages({ ...options, trackers, deliver });
  const pipeline = subscriptions.length + spareRequests;
  let workers = pipeline;
  let pending: Acknowledgement[] = [];
  const deleted = new Set<number>();
  let lastTurn: Promise<unknown> = Promise.resolve();
  let waiting = 0;
  /** When the server had no request any more, while none is in flight. */
  let idleSince = clock.monotonic();
  /** When the last message of each subscription came; at first when the connection began. */
  const receivedMs = new Map(subscriptions.map(({ id }) => [id, idleSince]));
  /** Subscriptions with a message on this connection. */
  const receivedOnce = new Set<number>();

  /** Sends requests until `signal` aborts. Resolves only if the server wants fewer parallel requests. */
  async function work(signal: AbortSignal): Promise<void> {
    for (;;) {
      await room(signal);
      const response = await publish(signal);
      if (response === "fewer") return;
      // Process messages in order of arrival, even while missing ones are fetched.
      if (response) await inTurn(() => take(response, signal));
    }
  }

  function inTurn<T>(what: () => Promise<T>): Promise<T> {
    const turn = lastTurn.then(what);
    lastTurn = turn.catch(() => {});
    return turn;
  }

  async function publish(signal: AbortSignal): Promise<PublishResponse | "fewer" | undefined> {
    const acknowledged = pending;
    pending = [];
    if (waiting++ === 0) {
      // A time in which the server had no request does not count as silence.
      const pausedMs = clock.monotonic() - idleSince;
      for (const [id, received] of receivedMs) receivedMs.set(id, received + pausedMs);
    }
    try {
      const subscriptionAcknowledgements = acknowledged.map(({ subscription: subscriptionId, sequenceNumber }) => ({
        subscriptionId,
        sequenceNumber,
      }));
      const patienceMs = Math.max(...subscriptions.map(silenceLimitMs)) * (pipeline + 1);
      const patient = Math.min(patienceMs, 2 ** 31 - 1);
      const response = await link.call("Publish", { subscriptionAcknowledgements }, signal, patient);
      receivedOnce.add(response.subscriptionId);
      receivedMs.set(response.subscriptionId, clock.monotonic());
      return response;
    } catch (error) {
      signal.throwIfAborted();
      const outcome = await judge(error, signal);
      // The server may have processed them already; repeated acknowledgements are harmless.
      pending.unshift(...acknowledged);
      return outcome;
    } finally {
      if (--waiting === 0) idleSince = clock.monotonic();
    }
  }

  async function judge(error: unknown, signal: AbortSignal): Promise<"fewer" | undefined> {
    const status = statusOf(error);
    if (status === "BadTooManyPublishRequests" && workers > 1) {
      workers--;
      return "fewer";
    }
    const cannotRead = isUnreadable(error);
    // The server has the next message, unless it sends this one again.
    if (cannotRead) options.unreadable(error);
    // Only this request timed out. The silence watch decides whether the server still responds.
    if (cannotRead || status === "BadTimeout" || status === "BadRequestTimeout") {
      await clock.sleep(afterTimeoutMs, signal);
      return undefined;
    }
    if (status === "BadNoSubscription") await gone("subscriptions");
    if (sessionGone(error)) await gone("session");
    log.debug({ err: error }, "publishing failed");
    throw error;
  }

  async function take(response: PublishResponse, signal: AbortSignal): Promise<void> {
    const { subscriptionId: id, notificationMessage: message, availableSequenceNumbers } = response;
    const { sequenceNumber } = message;
    const tracker = trackers.get(id);
    // A leftover of an earlier connection in the same session.
    if (!tracker) return remove(id, signal);
    const keepAlive = !message.notificationData?.length;
    const found = tracker.arrived({ sequenceNumber, keepAlive, available: availableSequenceNumbers ?? [] });
    if (found.beyond) {
      log.error({ subscription: id }, "more notifications are missing than may be requested at once");
      lost(id);
    }
    await missing.fetch(id, found.missing, signal, found.lags);
    const former = formers.get(id);
    if (!keepAlive && !found.known) await deliver(id, message, signal);
    if (response.moreNotifications) return;
    if (former) former.end();
    // Any message confirms its subscription, since a busy one sends no keep-alives.
    else alive(id);
  }

  /** Fetches the kept messages of a former subscription, then deletes it when all are on disk. */
  async function endFormer({ id, available }: PublisherOptions["formers"][number], signal: AbortSignal): Promise<void> {
    // Some servers announce kept messages only with their next keep-alive.
    await inTurn(() => missing.fetchKept(id, available, signal));
    await orAbort(formers.get(id)?.over ?? Promise.resolve(), signal);
    await remove(id, signal);
    await gone(id);
  }

  async function remove(id: number, signal: AbortSignal): Promise<void> {
    if (deleted.has(id)) return;
    deleted.add(id);
    trackers.delete(id);
    await deleteSubscription(link, id, signal).catch(() => {});
  }

  async function deliver(id: number, message: NotificationMessage, signal: AbortSignal): Promise<void> {
    const { notification, ended, undecoded } = readNotification(link.ua, id, message);
    const former = formers.get(id);
    if (ended !== undefined && !former) {
      await gone(id);
      throw new AgentError("SOURCE_UNREACHABLE", `the server ended the subscription: ${ended}`);
    }
    former?.delivered(notification.sequenceNumber);
    const old = trackers.get(id)?.isOld(message.sequenceNumber) ?? false;
    await options.deliver({ ...notification, old }, signal);
    if (undecoded === undefined) return;
    log.error({ subscription: id, reason: undecoded }, "a notification cannot be decoded completely");
    lost(id);
  }

  /** Rejects with `SOURCE_*` if the subscription is silent for too long, or with `signal.reason`. */
  async function watchSilence(subscription: Published, signal: AbortSignal): Promise<never> {
    const { id, origin, keepAliveCount, publishingMs } = subscription;
    // The server first answers the Publish requests that it kept for the lost connection of a resumed session.
    const leftBehindMs = origin === "kept" ? pipeline * keepAliveCount * publishingMs : 0;
    for (;;) {
      const limitMs = silenceLimitMs(subscription) + (receivedOnce.has(id) ? 0 : leftBehindMs);
      const silentMs = waiting > 0 ? clock.monotonic() - (receivedMs.get(id) ?? 0) : 0;
      if (silentMs >= limitMs) {
        // A server that answers has lost the subscription. Otherwise, the network is broken.
        const request = { nodesToRead: [{ nodeId: serverState, attributeId: attributes.value }] };
        const answers = await link.call("Read", request, signal, answerWithinMs).catch(() => undefined);
        signal.throwIfAborted();
        const silence = `for ${Math.round(silentMs / 1_000)} s`;
        if (!answers) throw new AgentError("SOURCE_UNREACHABLE", `the server has been silent ${silence}`);
        await gone(id);
        await remove(id, signal);
        throw new AgentError("SOURCE_PROTOCOL", `the server answers, but has published nothing ${silence}`);
      }
      await clock.sleep(Math.max(50, limitMs - silentMs), signal);
    }
  }

  return {
    /** Acknowledges a message that is on disk, with the next Publish request. */
    acknowledge(acknowledgement: Acknowledgement): void {
      pending.push(acknowledgement);
      formers.get(acknowledgement.subscription)?.acknowledged(acknowledgement.sequenceNumber);
    },
    /** Rejects with `SOURCE_*` if a subscription or the connection is lost, or with `signal.reason`. */
    async run(signal: AbortSignal): Promise<void> {
      const stop = new AbortController();
      const all = AbortSignal.any([signal, stop.signal]);
      const kept = subscriptions.filter(({ origin }) => origin === "kept");
      try {
        await Promise.all([
          ...subscriptions.map((subscription) => watchSilence(subscription, all)),
          ...options.formers.map((former) => endFormer(former, all)),
          ...kept.map(({ id }) => missing.catchUp(id, () => receivedOnce.has(id), inTurn, all)),
          ...Array.from({ length: pipeline }, () => work(all)),
        ]);
      } finally {
        stop.abort();
      }
    },
  };
}
