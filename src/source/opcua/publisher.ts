// Asks the server for notifications and keeps account of them. A message is acknowledged once its readings are on disk;
// until then the server keeps it, and gives it again to whoever takes the subscription up (OPC 10000-4, 5.14.5).
import type { NotificationMessage, PublishResponse } from "node-opcua-client";
import { AgentError } from "../../core/errors.ts";
import type { Runtime } from "../../core/runtime.ts";
import { statusOf } from "./failure.ts";
import { FormerSubscription } from "./former-subscription.ts";
import { type Link, sessionGone } from "./link.ts";
import type { DataValueLike } from "./reading.ts";
import { SequenceTracker } from "./sequence.ts";
import type { Ua } from "./stack.ts";
import { type Counts, deleteSubscription, type Subscription, silenceLimitMs } from "./subscription.ts";

export type Acknowledgement = Pick<Notification, "subscription" | "sequenceNumber">;

export interface DataChange {
  readonly handle: number;
  readonly value: DataValueLike;
}

/** One notification message with data. */
export interface Notification {
  readonly subscription: number;
  readonly sequenceNumber: number;
  readonly changes: readonly DataChange[];
}

export interface PublisherOptions {
  readonly ua: Ua;
  readonly link: Link;
  readonly runtime: Runtime;
  readonly source: string;
  readonly subscription: Counts & Pick<Subscription, "id" | "firstSequence" | "former">;
  /** Takes a message over. Messages come in order, each once; the next comes when it resolves. */
  readonly deliver: (notification: Notification, signal: AbortSignal) => Promise<void>;
  /** The server lives, and has nothing to tell: a keep-alive. */
  readonly alive: () => void;
  /** Resolves when there is room for more. Rejects with `signal.reason`. */
  readonly room: (signal: AbortSignal) => Promise<void>;
  /** The server has not kept a message that did not arrive. */
  readonly lost: () => void;
  /** The server does not have it any more: the next connection need not look for it. */
  readonly gone: (what: "session" | "subscription") => Promise<void>;
}

/** Server_ServerStatus_State. */
const serverState = 2259;
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
  readonly #trackers: Map<number, SequenceTracker>;
  readonly #former: FormerSubscription | undefined;
  #acknowledged: Acknowledgement[] = [];
  readonly #deleted = new Set<number>();
  #turn: Promise<void> = Promise.resolve();
  #waiting = 0;
  #workers = pipeline;
  #heardMs: number;

  constructor(options: PublisherOptions) {
    this.#options = options;
    const { id, firstSequence, former } = options.subscription;
    this.#trackers = new Map([[id, new SequenceTracker(firstSequence)]]);
    this.#former = former && new FormerSubscription(former.id);
    if (former) this.#trackers.set(former.id, new SequenceTracker(undefined));
    this.#heardMs = options.runtime.clock.monotonic();
  }

  /** The message is on disk: the server may forget it. Told with the next request. */
  acknowledge(acknowledgement: Acknowledgement): void {
    this.#acknowledged.push(acknowledgement);
    this.#former?.acknowledged(acknowledgement);
  }

  /** Runs until the subscription or the connection is lost: rejects with `SOURCE_*`, or with `signal.reason`. */
  async run(signal: AbortSignal): Promise<never> {
    const stop = new AbortController();
    const all = AbortSignal.any([signal, stop.signal]);
    try {
      await Promise.race([
        this.#watch(all),
        this.#endFormer(all),
        ...Array.from({ length: pipeline }, () => this.#work(all)),
      ]);
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
    const acknowledgements = this.#acknowledged.map(({ subscription: subscriptionId, sequenceNumber }) => ({
      subscriptionId,
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
    const { deliver, alive, subscription } = this.#options;
    const { subscriptionId: id, notificationMessage: message } = response;
    const tracker = this.#trackers.get(id);
    // Left over from an earlier connection in the same session.
    if (!tracker) return this.#delete(id, signal);
    const { missing, known } = tracker.arrived({
      sequenceNumber: message.sequenceNumber,
      keepAlive: !message.notificationData?.length,
      available: response.availableSequenceNumbers ?? [],
    });
    for (const sequenceNumber of missing) await this.#fetchAgain(id, sequenceNumber, signal);
    if (!message.notificationData?.length) {
      if (id === subscription.id) alive();
    } else if (!known) {
      this.#former?.delivered({ subscription: id, sequenceNumber: message.sequenceNumber });
      await deliver(await this.#read(id, message), signal);
    }
    if (id === this.#former?.id && !response.moreNotifications) this.#former.end();
  }

  /** Ends the former subscription when its time has come, and never resolves. */
  async #endFormer(signal: AbortSignal): Promise<never> {
    if (this.#former) {
      await Promise.race([this.#former.over, forever(signal)]);
      await this.#delete(this.#former.id, signal);
    }
    return await forever(signal);
  }

  /** A subscription that is not needed any more. */
  async #delete(id: number, signal: AbortSignal): Promise<void> {
    if (this.#deleted.has(id)) return;
    this.#deleted.add(id);
    this.#trackers.delete(id);
    await deleteSubscription(this.#options.ua, this.#options.link, id, signal).catch(() => {});
  }

  async #fetchAgain(id: number, sequenceNumber: number, signal: AbortSignal): Promise<void> {
    const { ua, link, runtime, source, deliver } = this.#options;
    const request = new ua.RepublishRequest({ subscriptionId: id, retransmitSequenceNumber: sequenceNumber });
    try {
      const { notificationMessage } = await link.call(request, ua.RepublishResponse, signal);
      runtime.metrics.counter(republished).add(1, { source });
      this.#former?.delivered({ subscription: id, sequenceNumber });
      await deliver(await this.#read(id, notificationMessage), signal);
    } catch (error) {
      if (statusOf(error) !== "BadMessageNotAvailable") throw error;
      runtime.metrics.counter(lostNotifications).add(1, { source });
      runtime.log.error({ sequenceNumber }, "the server has lost a notification that did not arrive");
      this.#options.lost();
    }
  }

  async #read(id: number, message: NotificationMessage): Promise<Notification> {
    const { ua, gone, subscription } = this.#options;
    const changes: DataChange[] = [];
    for (const data of message.notificationData ?? []) {
      if (data instanceof ua.DataChangeNotification)
        for (const { clientHandle, value } of data.monitoredItems ?? []) changes.push({ handle: clientHandle, value });
      else if (data instanceof ua.StatusChangeNotification && id === subscription.id) {
        await gone("subscription");
        throw new AgentError("SOURCE_UNREACHABLE", `the server ended the subscription: ${data.status.name}`);
      }
    }
    return { subscription: id, sequenceNumber: message.sequenceNumber, changes };
  }

  /** A server that still answers has lost the subscription; one that does not has everything, behind a broken network. */
  async #leave(silentMs: number, signal: AbortSignal): Promise<never> {
    const { ua, link, subscription, gone } = this.#options;
    const request = new ua.ReadRequest({
      nodesToRead: [{ nodeId: ua.makeNodeId(serverState, 0), attributeId: ua.AttributeIds.Value }],
    });
    const silence = `for ${Math.round(silentMs / 1_000)} s`;
    const answers = await link.call(request, ua.ReadResponse, signal).catch(() => undefined);
    signal.throwIfAborted();
    if (!answers) throw new AgentError("SOURCE_UNREACHABLE", `the server has been silent ${silence}`);
    await gone("subscription");
    await this.#delete(subscription.id, signal);
    throw new AgentError("SOURCE_PROTOCOL", `the server answers, but has published nothing ${silence}`);
  }

  /** Notices a server that neither answers nor hangs up. */
  async #watch(signal: AbortSignal): Promise<never> {
    const { runtime, subscription } = this.#options;
    const limitMs = silenceLimitMs(subscription);
    for (;;) {
      const silentMs = this.#waiting > 0 ? runtime.clock.monotonic() - this.#heardMs : 0;
      if (silentMs >= limitMs) await this.#leave(silentMs, signal);
      await runtime.clock.sleep(Math.max(50, limitMs - silentMs), signal);
    }
  }
}

function forever(signal: AbortSignal): Promise<never> {
  if (signal.aborted) return Promise.reject(signal.reason);
  return new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason), { once: true }));
}
