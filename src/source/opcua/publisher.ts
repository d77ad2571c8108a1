// Asks the server for notifications and keeps account of them. A message is acknowledged once its readings are on disk;
// until then the server keeps it, and gives it again to whoever takes the subscription up (OPC 10000-4, 5.14.5).
import type { NotificationMessage, PublishResponse } from "node-opcua-client";
import { AgentError } from "../../core/errors.ts";
import type { Runtime } from "../../core/runtime.ts";
import { statusOf } from "./failure.ts";
import { type Link, sessionGone } from "./link.ts";
import type { DataValueLike } from "./reading.ts";
import { SequenceTracker } from "./sequence.ts";
import type { Ua } from "./stack.ts";
import { type Counts, deleteSubscription, silenceLimitMs } from "./subscription.ts";

export interface DataChange {
  readonly handle: number;
  readonly value: DataValueLike;
}

/** One notification message with data. */
export interface Notification {
  readonly sequenceNumber: number;
  readonly changes: readonly DataChange[];
}

export interface PublisherOptions {
  readonly ua: Ua;
  readonly link: Link;
  readonly runtime: Runtime;
  readonly source: string;
  readonly subscription: Counts & { readonly id: number; readonly firstSequence: number | undefined };
  /** Takes a message over. Messages come in order, each once. */
  readonly deliver: (notification: Notification) => void;
  /** Resolves when there is room for more. Rejects with `signal.reason`. */
  readonly room: (signal: AbortSignal) => Promise<void>;
  /** The server does not have it any more: the next connection need not look for it. */
  readonly gone: (what: "session" | "subscription") => Promise<void>;
}

/** Requests on their way at a time: enough for a round trip of several publishing intervals. */
const pipeline = 4;

const lostNotifications = {
  name: "opcua_lost_notifications_total",
  help: "Notification messages that the server did not have any more when they were asked for again.",
  labels: ["source"],
} as const;
const republished = {
  name: "opcua_republished_notifications_total",
  help: "Notification messages that were missing and were fetched again.",
  labels: ["source"],
} as const;

export class Publisher {
  readonly #options: PublisherOptions;
  readonly #tracker: SequenceTracker;
  readonly #foreign = new Set<number>();
  #acknowledged: number[] = [];
  #turn: Promise<void> = Promise.resolve();
  #waiting = 0;
  #workers = pipeline;
  #heardMs: number;

  constructor(options: PublisherOptions) {
    this.#options = options;
    this.#tracker = new SequenceTracker(options.subscription.firstSequence);
    this.#heardMs = options.runtime.clock.monotonic();
  }

  /** The message is on disk: the server may forget it. Told with the next request. */
  acknowledge(sequenceNumber: number): void {
    this.#acknowledged.push(sequenceNumber);
  }

  /** Runs until the subscription or the connection is lost: rejects with `SOURCE_*`, or with `signal.reason`. */
  async run(signal: AbortSignal): Promise<never> {
    const stop = new AbortController();
    const all = AbortSignal.any([signal, stop.signal]);
    try {
      await Promise.race([this.#watch(all), ...Array.from({ length: pipeline }, () => this.#work(all))]);
      throw new AgentError("SOURCE_PROTOCOL", "the server takes no publish requests");
    } finally {
      stop.abort();
    }
  }

  /** One request after the other. Resolves only when the server wants no more in parallel and others go on. */
  async #work(signal: AbortSignal): Promise<void> {
    for (;;) {
      await this.#options.room(signal);
      const response = await this.#publish(signal);
      if (response === "fewer") return await forever(signal);
      if (!response) continue;
      // Messages are worked off in the order they came, although what is missing is fetched in between.
      const turn = this.#turn.then(() => this.#take(response, signal));
      this.#turn = turn.catch(() => {});
      await turn;
    }
  }

  async #publish(signal: AbortSignal): Promise<PublishResponse | "fewer" | undefined> {
    const { ua, link, runtime, subscription } = this.#options;
    const acknowledgements = this.#acknowledged.map((sequenceNumber) => ({
      subscriptionId: subscription.id,
      sequenceNumber,
    }));
    this.#acknowledged = [];
    if (this.#waiting === 0) this.#heardMs = runtime.clock.monotonic();
    this.#waiting++;
    try {
      const request = new ua.PublishRequest({ subscriptionAcknowledgements: acknowledgements });
      const patienceMs = silenceLimitMs(subscription) * (pipeline + 1);
      const response = await link.call(request, ua.PublishResponse, signal, Math.min(patienceMs, 2 ** 31 - 1));
      this.#heardMs = runtime.clock.monotonic();
      return response;
    } catch (error) {
      signal.throwIfAborted();
      return await this.#judge(error);
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
    if (status === "BadNoSubscription") await gone("subscription");
    if (sessionGone(error)) await gone("session");
    runtime.log.debug({ err: error }, "publishing failed");
    throw error;
  }

  async #take(response: PublishResponse, signal: AbortSignal): Promise<void> {
    const { ua, link, subscription, deliver } = this.#options;
    if (response.subscriptionId !== subscription.id) {
      if (this.#foreign.has(response.subscriptionId)) return;
      // Left over from an earlier connection in the same session.
      this.#foreign.add(response.subscriptionId);
      await deleteSubscription(ua, link, response.subscriptionId, signal).catch(() => {});
      return;
    }
    const message = response.notificationMessage;
    const { missing, known } = this.#tracker.arrived({
      sequenceNumber: message.sequenceNumber,
      keepAlive: !message.notificationData?.length,
      available: response.availableSequenceNumbers ?? [],
    });
    for (const sequenceNumber of missing) await this.#fetchAgain(sequenceNumber, signal);
    if (!known && message.notificationData?.length) deliver(await this.#read(message));
  }

  async #fetchAgain(sequenceNumber: number, signal: AbortSignal): Promise<void> {
    const { ua, link, subscription, runtime, source, deliver } = this.#options;
    const request = new ua.RepublishRequest({
      subscriptionId: subscription.id,
      retransmitSequenceNumber: sequenceNumber,
    });
    try {
      const { notificationMessage } = await link.call(request, ua.RepublishResponse, signal);
      runtime.metrics.counter(republished).add(1, { source });
      deliver(await this.#read(notificationMessage));
    } catch (error) {
      if (statusOf(error) !== "BadMessageNotAvailable") throw error;
      runtime.metrics.counter(lostNotifications).add(1, { source });
      runtime.log.error({ sequenceNumber }, "the server has lost a notification that did not arrive");
    }
  }

  async #read(message: NotificationMessage): Promise<Notification> {
    const { ua, gone } = this.#options;
    const changes: DataChange[] = [];
    for (const data of message.notificationData ?? []) {
      if (data instanceof ua.DataChangeNotification)
        for (const { clientHandle, value } of data.monitoredItems ?? []) changes.push({ handle: clientHandle, value });
      else if (data instanceof ua.StatusChangeNotification) {
        await gone("subscription");
        throw new AgentError("SOURCE_UNREACHABLE", `the server ended the subscription: ${data.status.name}`);
      }
    }
    return { sequenceNumber: message.sequenceNumber, changes };
  }

  /** Notices a server that neither answers nor hangs up. */
  async #watch(signal: AbortSignal): Promise<never> {
    const { runtime, subscription } = this.#options;
    const limitMs = silenceLimitMs(subscription);
    for (;;) {
      const silentMs = this.#waiting > 0 ? runtime.clock.monotonic() - this.#heardMs : 0;
      if (silentMs >= limitMs)
        throw new AgentError("SOURCE_UNREACHABLE", `the server has been silent for ${Math.round(silentMs / 1_000)} s`);
      await runtime.clock.sleep(Math.max(50, limitMs - silentMs), signal);
    }
  }
}

function forever(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason), { once: true }));
}
