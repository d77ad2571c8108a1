// Asks the server for notifications and keeps account of them. A message is acknowledged once its readings are on disk;
// until then the server keeps it, and gives it again to whoever takes the subscription up (OPC 10000-4, 5.14.5).
import type { NotificationMessage, PublishResponse } from "node-opcua-client";
import { AgentError } from "../../../core/errors.ts";
import { orAbort } from "../../../lib/abort.ts";
import { statusOf } from "../session/failure.ts";
import { sessionGone } from "../session/link.ts";
import { MissingMessages, type MissingMessagesOptions } from "./missing-messages.ts";
import { type Acknowledgement, type Notification, readNotification } from "./notification.ts";
import { type Counts, silenceLimitMs } from "./publishing-group.ts";
import { FormerSubscription, SequenceTracker } from "./sequence.ts";
import { SilenceWatch } from "./silence-watch.ts";
import { deleteSubscription, type Former, type Subscription } from "./subscription.ts";

export interface PublisherOptions extends Omit<MissingMessagesOptions, "trackers" | "deliver"> {
  /** At least one. */
  readonly subscriptions: readonly (Counts & Pick<Subscription, "id" | "firstSequence" | "origin">)[];
  /** Former subscriptions, which deliver the messages that they kept and are then deleted. */
  readonly formers: readonly Pick<Former, "id" | "available">[];
  /** Takes a message over. Messages come in order, each once; the next comes when it resolves. */
  readonly deliver: (notification: Notification, signal: AbortSignal) => Promise<void>;
  /** The server lives, and has nothing to tell: a keep-alive. */
  readonly alive: () => void;
  /** The server does not have it any more: the next connection need not look for it. */
  readonly gone: (what: "session" | "subscriptions" | number) => Promise<void>;
}

/** Requests on their way beyond one for each subscription: enough for a round trip of several publishing intervals. */
const spareRequests = 3;

export class Publisher {
  readonly #options: PublisherOptions;
  readonly #trackers: Map<number, SequenceTracker>;
  readonly #formers: ReadonlyMap<number, FormerSubscription>;
  readonly #pipeline: number;
  #acknowledged: Acknowledgement[] = [];
  readonly #deleted = new Set<number>();
  #turn: Promise<unknown> = Promise.resolve();
  #waiting = 0;
  #workers: number;
  readonly #silence: SilenceWatch;
  readonly #missing: MissingMessages;

  constructor(options: PublisherOptions) {
    this.#options = options;
    const { subscriptions, formers, gone } = options;
    this.#pipeline = subscriptions.length + spareRequests;
    this.#workers = this.#pipeline;
    this.#formers = new Map(formers.map(({ id }) => [id, new FormerSubscription(id)]));
    this.#trackers = new Map([
      ...subscriptions.map(({ id, firstSequence }) => [id, new SequenceTracker(firstSequence)] as const),
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

  /** The message is on disk: the server may forget it. Told with the next request. */
  acknowledge(acknowledgement: Acknowledgement): void {
    this.#acknowledged.push(acknowledgement);
    this.#formers.get(acknowledgement.subscription)?.acknowledged(acknowledgement);
  }

  /** Runs until the subscription or the connection is lost: rejects with `SOURCE_*`, or with `signal.reason`. */
  async run(signal: AbortSignal): Promise<void> {
    const { subscriptions, formers } = this.#options;
    const stop = new AbortController();
    const all = AbortSignal.any([signal, stop.signal]);
    const kept = subscriptions.filter(({ origin }) => origin === "kept");
    try {
      await Promise.all([
        ...subscriptions.map((subscription) => this.#silence.run(subscription, all)),
        ...formers.map((former) => this.#endFormer(former, all)),
        ...kept.map(({ id }) => this.#missing.catchUp(id, () => this.#silence.hasHeard(id), this.#inTurn, all)),
        ...Array.from({ length: this.#pipeline }, () => this.#work(all)),
      ]);
    } finally {
      stop.abort();
    }
  }

  /** One request after the other. Resolves only when the server wants no more in parallel and others go on. */
  async #work(signal: AbortSignal): Promise<void> {
    for (;;) {
      await this.#options.room(signal);
      const response = await this.#publish(signal);
      if (response === "fewer") return;
      // Messages are worked off in the order they came, although what is missing is fetched in between.
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
    if (this.#waiting === 0) this.#silence.begin();
    this.#waiting++;
    try {
      const subscriptionAcknowledgements = acknowledged.map(({ subscription: subscriptionId, sequenceNumber }) => ({
        subscriptionId,
        sequenceNumber,
      }));
      const patienceMs = Math.max(...subscriptions.map(silenceLimitMs)) * (this.#pipeline + 1);
      const patient = Math.min(patienceMs, 2 ** 31 - 1);
      const response = await link.call("Publish", { subscriptionAcknowledgements }, signal, patient);
      this.#silence.heard(response.subscriptionId);
      return response;
    } catch (error) {
      signal.throwIfAborted();
      const verdict = await this.#judge(error);
      // Nobody knows whether the server has taken them: told twice does no harm.
      this.#acknowledged.unshift(...acknowledged);
      return verdict;
    } finally {
      this.#waiting--;
    }
  }

  async #judge(error: unknown): Promise<"fewer" | undefined> {
    const { gone, runtime } = this.#options;
    const status = statusOf(error);
    if (status === "BadTooManyPublishRequests" && this.#workers > 1) {
      this.#workers--;
      return "fewer";
    }
    // The server gave this one request up; whether it still speaks is the watch's to say.
    if (status === "BadTimeout" || status === "BadRequestTimeout") return undefined;
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
    // Left over from an earlier connection in the same session.
    if (!tracker) return this.#delete(id, signal);
    const keepAlive = !message.notificationData?.length;
    const head = { sequenceNumber, keepAlive, available: availableSequenceNumbers ?? [] };
    const { missing, known, beyond } = tracker.arrived(head);
    if (beyond) {
      runtime.log.error({ subscription: id }, "more notifications are missing than can be asked for");
      lost(id);
    }
    await this.#missing.fetch(id, missing, signal);
    const former = this.#formers.get(id);
    // Where one has nothing to tell, and the others are silent, all is well.
    if (keepAlive && !former) alive();
    if (!keepAlive && !known) await this.#deliver(id, message, signal);
    if (!response.moreNotifications) former?.end();
  }

  /** Fetches what a former subscription is known to have, and ends it when its time has come. */
  async #endFormer({ id, available }: PublisherOptions["formers"][number], signal: AbortSignal): Promise<void> {
    const former = this.#formers.get(id);
    if (!former) return;
    // Servers were seen that tell of it with their next keep-alive alone.
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
    const { link, deliver, gone } = this.#options;
    const { notification, ended } = readNotification(link.ua, id, message);
    const former = this.#formers.get(id);
    if (ended !== undefined && !former) {
      await gone(id);
      throw new AgentError("SOURCE_UNREACHABLE", `the server ended the subscription: ${ended}`);
    }
    former?.delivered(notification);
    await deliver({ ...notification, old: this.#trackers.get(id)?.isOld(message.sequenceNumber) ?? false }, signal);
  }
}
