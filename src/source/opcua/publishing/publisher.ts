// Sends Publish requests and tracks the notifications. Messages are acknowledged once their readings are on disk; until
// then the server keeps them for Republish, also for a later connection (OPC 10000-4, 5.14.5).
import type { NotificationMessage, PublishResponse } from "node-opcua-client";
import { AgentError } from "../../../core/errors.ts";
import { orAbort } from "../../../lib/flow/abort.ts";
import { sessionGone } from "../session/link.ts";
import { isUnreadable, statusOf } from "../stack/failure.ts";
import {
  FormerSubscription,
  MissingMessages,
  type MissingMessagesOptions,
  SequenceTracker,
} from "./missing-messages.ts";
import { type Acknowledgement, type Notification, readNotification } from "./notification.ts";
import { type Counts, silenceLimitMs } from "./publishing-group.ts";
import { SilenceWatch } from "./silence-watch.ts";
import { deleteSubscription, type Former, type Subscription } from "./subscription.ts";

export interface PublisherOptions extends Omit<MissingMessagesOptions, "trackers" | "deliver"> {
  /** `lags`: see `Positions.lags`. */
  readonly subscriptions: readonly (Counts &
    Pick<Subscription, "id" | "firstSequence" | "origin"> & { readonly lags: boolean })[];
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

export class Publisher {
  readonly #options: PublisherOptions;
  readonly #trackers: Map<number, SequenceTracker>;
  readonly #formers: ReadonlyMap<number, FormerSubscription>;
  readonly #pipeline: number;
  #acknowledged: Acknowledgement[] = [];
  readonly #deleted = new Set<number>();
  #turn: Promise<unknown> = Promise.resolve();
  #waiting = 0;
  /** When the server had no request any more, while none is in flight. */
  #idleSince: number;
  #workers: number;
  readonly #silence: SilenceWatch;
  readonly #missing: MissingMessages;

  constructor(options: PublisherOptions) {
    this.#options = options;
    const { subscriptions, formers, gone, runtime } = options;
    this.#idleSince = runtime.clock.monotonic();
    this.#pipeline = subscriptions.length + spareRequests;
    this.#workers = this.#pipeline;
    this.#formers = new Map(formers.map(({ id }) => [id, new FormerSubscription(id)]));
    this.#trackers = new Map([
      ...subscriptions.map(({ id, firstSequence, lags }) => [id, new SequenceTracker(firstSequence, lags)] as const),
      ...formers.map(({ id }) => [id, new SequenceTracker(undefined)] as const),
    ]);
    this.#missing = new MissingMessages({
      ...options,
      trackers: this.#trackers,
      deliver: (id, message, signal) => this.#deliver(id, message, signal),
    });
    this.#silence = new SilenceWatch({
      ...options,
      requests: this.#pipeline,
      waiting: () => this.#waiting > 0,
      lost: async (id, signal) => {
        await gone(id);
        await this.#delete(id, signal);
      },
    });
  }

  /** Acknowledges a message that is on disk, with the next Publish request. */
  acknowledge(acknowledgement: Acknowledgement): void {
    this.#acknowledged.push(acknowledgement);
    this.#formers.get(acknowledgement.subscription)?.acknowledged(acknowledgement);
  }

  /** Rejects with `SOURCE_*` if a subscription or the connection is lost, or with `signal.reason`. */
  async run(signal: AbortSignal): Promise<void> {
    const { subscriptions, formers } = this.#options;
    const stop = new AbortController();
    const all = AbortSignal.any([signal, stop.signal]);
    const kept = subscriptions.filter(({ origin }) => origin === "kept");
    try {
      await Promise.all([
        ...subscriptions.map((subscription) => this.#silence.run(subscription, all)),
        ...formers.map((former) => this.#endFormer(former, all)),
        ...kept.map(({ id }) => this.#missing.catchUp(id, () => this.#silence.hasReceived(id), this.#inTurn, all)),
        ...Array.from({ length: this.#pipeline }, () => this.#work(all)),
      ]);
    } finally {
      stop.abort();
    }
  }

  /** Sends requests until `signal` aborts. Resolves only if the server wants fewer parallel requests. */
  async #work(signal: AbortSignal): Promise<void> {
    for (;;) {
      await this.#options.room(signal);
      const response = await this.#publish(signal);
      if (response === "fewer") return;
      // Process messages in order of arrival, even while missing ones are fetched.
      if (response) await this.#inTurn(() => this.#take(response, signal));
    }
  }

  readonly #inTurn = <T>(work: () => Promise<T>): Promise<T> => {
    const turn = this.#turn.then(work);
    this.#turn = turn.catch(() => {});
    return turn;
  };

  async #publish(signal: AbortSignal): Promise<PublishResponse | "fewer" | undefined> {
    const { link, subscriptions } = this.#options;
    const acknowledged = this.#acknowledged;
    this.#acknowledged = [];
    if (this.#waiting++ === 0) this.#silence.paused(this.#options.runtime.clock.monotonic() - this.#idleSince);
    try {
      const subscriptionAcknowledgements = acknowledged.map(({ subscription: subscriptionId, sequenceNumber }) => ({
        subscriptionId,
        sequenceNumber,
      }));
      const patienceMs = Math.max(...subscriptions.map(silenceLimitMs)) * (this.#pipeline + 1);
      const patient = Math.min(patienceMs, 2 ** 31 - 1);
      const response = await link.call("Publish", { subscriptionAcknowledgements }, signal, patient);
      this.#silence.received(response.subscriptionId);
      return response;
    } catch (error) {
      signal.throwIfAborted();
      const verdict = await this.#judge(error, signal);
      // The server may have processed them already; repeated acknowledgements are harmless.
      this.#acknowledged.unshift(...acknowledged);
      return verdict;
    } finally {
      if (--this.#waiting === 0) this.#idleSince = this.#options.runtime.clock.monotonic();
    }
  }

  async #judge(error: unknown, signal: AbortSignal): Promise<"fewer" | undefined> {
    const { gone, runtime, unreadable } = this.#options;
    const status = statusOf(error);
    if (status === "BadTooManyPublishRequests" && this.#workers > 1) {
      this.#workers--;
      return "fewer";
    }
    // Only this request timed out. The silence watch decides whether the server still responds.
    if (status === "BadTimeout" || status === "BadRequestTimeout")
      return runtime.clock.sleep(afterTimeoutMs, signal).then(() => undefined);
    if (isUnreadable(error)) {
      unreadable(error);
      // The server has the next message, unless it sends this one again.
      return runtime.clock.sleep(afterTimeoutMs, signal).then(() => undefined);
    }
    if (status === "BadNoSubscription") await gone("subscriptions");
    if (sessionGone(error)) await gone("session");
    runtime.log.debug({ err: error }, "publishing failed");
    throw error;
  }

  async #take(response: PublishResponse, signal: AbortSignal): Promise<void> {
    const { alive, lost, runtime } = this.#options;
    const { subscriptionId: id, notificationMessage: message, availableSequenceNumbers } = response;
    const { sequenceNumber } = message;
    const tracker = this.#trackers.get(id);
    // A leftover of an earlier connection in the same session.
    if (!tracker) return this.#delete(id, signal);
    const keepAlive = !message.notificationData?.length;
    const head = { sequenceNumber, keepAlive, available: availableSequenceNumbers ?? [] };
    const { missing, known, beyond, lags } = tracker.arrived(head);
    if (beyond) {
      runtime.log.error({ subscription: id }, "more notifications are missing than can be asked for");
      lost(id);
    }
    await this.#missing.fetch(id, missing, signal, lags);
    const former = this.#formers.get(id);
    if (!keepAlive && !known) await this.#deliver(id, message, signal);
    if (response.moreNotifications) return;
    if (former) former.end();
    // Any message confirms its subscription, since a busy one sends no keep-alives.
    else alive(id);
  }

  /** Fetches the kept messages of a former subscription, then deletes it when all are on disk. */
  async #endFormer({ id, available }: PublisherOptions["formers"][number], signal: AbortSignal): Promise<void> {
    const former = this.#formers.get(id);
    if (!former) return;
    // Some servers announce kept messages only with their next keep-alive.
    await this.#inTurn(() => this.#missing.fetchKept(id, available, signal));
    await orAbort(former.over, signal);
    await this.#delete(id, signal);
    await this.#options.gone(id);
  }

  async #delete(id: number, signal: AbortSignal): Promise<void> {
    if (this.#deleted.has(id)) return;
    this.#deleted.add(id);
    this.#trackers.delete(id);
    await deleteSubscription(this.#options.link, id, signal).catch(() => {});
  }

  async #deliver(id: number, message: NotificationMessage, signal: AbortSignal): Promise<void> {
    const { link, deliver, gone, lost, runtime } = this.#options;
    const { notification, ended, undecoded } = readNotification(link.ua, id, message);
    const former = this.#formers.get(id);
    if (ended !== undefined && !former) {
      await gone(id);
      throw new AgentError("SOURCE_UNREACHABLE", `the server ended the subscription: ${ended}`);
    }
    former?.delivered(notification);
    await deliver({ ...notification, old: this.#trackers.get(id)?.isOld(message.sequenceNumber) ?? false }, signal);
    if (undecoded === undefined) return;
    runtime.log.error({ subscription: id, reason: undecoded }, "a notification cannot be decoded completely");
    lost(id);
  }
}
