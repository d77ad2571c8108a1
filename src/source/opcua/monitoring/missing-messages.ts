// Fetches notification messages that did not arrive, and reports those that the server no longer has.
import type { NotificationMessage } from "node-opcua-client";
import type { Runtime } from "../../../core/runtime.ts";
import { statusOf } from "../session/failure.ts";
import type { Link } from "../session/link.ts";
import { inOrder, type SequenceTracker } from "./sequence.ts";

export interface MissingMessagesOptions extends Republishing {
  readonly trackers: ReadonlyMap<number, SequenceTracker>;
  /** Receives the messages in order. */
  readonly deliver: (subscription: number, message: NotificationMessage, signal: AbortSignal) => Promise<void>;
  /** Resolves when there is room for more. Rejects with `signal.reason`. */
  readonly room: (signal: AbortSignal) => Promise<void>;
  /** Called if the server no longer has a missing message. */
  readonly lost: (subscription: number) => void;
}

/** Interval of Republish attempts while nothing arrives for the subscription. */
const catchUpEveryMs = 1_000;

export class MissingMessages {
  readonly #options: MissingMessagesOptions;

  constructor(options: MissingMessagesOptions) {
    this.#options = options;
  }

  /** `lags`: messages before the first one that the server has are on another agent's disk, so they are not lost. */
  async fetch(id: number, sequenceNumbers: readonly number[], signal: AbortSignal, lags = false): Promise<void> {
    const tracker = this.#options.trackers.get(id);
    let mayBeStored = lags;
    let found: Awaited<ReturnType<typeof republish>> | undefined;
    for (const sequenceNumber of sequenceNumbers) {
      const lostBefore = typeof found === "string";
      if (found !== "none") found = await republish(this.#options, id, sequenceNumber, signal);
      if (typeof found !== "string") {
        mayBeStored &&= tracker?.isOld(sequenceNumber) === true;
        await this.#options.deliver(id, found, signal);
        continue;
      }
      // A server that keeps no messages has also lost those sent after the other agent was killed.
      if (found === "gone" && mayBeStored) continue;
      tellLost(this.#options, sequenceNumber);
      // Report the loss before later messages are stored. One report covers consecutive losses.
      if (!lostBefore) this.#options.lost(id);
    }
  }

  /** Fetches all messages that a former subscription still has. */
  async fetchKept(id: number, available: readonly number[], signal: AbortSignal): Promise<void> {
    const last = available.toSorted(inOrder).at(-1);
    const tracker = this.#options.trackers.get(id);
    if (last === undefined || !tracker) return;
    const { missing, known } = tracker.arrived({ sequenceNumber: last, keepAlive: false, available });
    await this.fetch(id, known ? missing : [...missing, last], signal);
  }

  /**
   * Fetches messages that were lost with the previous connection, without waiting for the next keep-alive. Resolves
   * when `received` returns true, or nothing is left. `inTurn` serializes this with arriving messages.
   */
  async catchUp(
    id: number,
    received: () => boolean,
    inTurn: <T>(work: () => Promise<T>) => Promise<T>,
    signal: AbortSignal,
  ): Promise<void> {
    const { room, runtime } = this.#options;
    while (!received()) {
      await room(signal);
      const found = await inTurn(() => this.#fetchNext(id, signal));
      if (found === "none") return;
      if (found === "gone") await runtime.clock.sleep(catchUpEveryMs, signal);
    }
  }

  async #fetchNext(id: number, signal: AbortSignal): Promise<"had" | "gone" | "none"> {
    const tracker = this.#options.trackers.get(id);
    if (tracker?.next === undefined) return "none";
    const message = await republish(this.#options, id, tracker.next, signal);
    if (typeof message === "string") return message;
    tracker.fetched();
    await this.#options.deliver(id, message, signal);
    return "had";
  }
}

const lostNotifications = {
  name: "source_opcua_lost_notifications_total",
  help: "Notification messages that the server did not have any more when they were asked for again.",
  labels: ["source"],
} as const;
const republished = {
  name: "source_opcua_republished_notifications_total",
  help: "Notification messages that were missing and were fetched again.",
  labels: ["source"],
} as const;

/** Statuses of a server that keeps no messages at all. */
const keepsNone = ["BadServiceUnsupported", "BadNotImplemented", "BadNotSupported"];

export interface Republishing {
  readonly link: Link;
  readonly runtime: Runtime;
  readonly source: string;
}

/**
 * `gone`: the server lacks the message (yet). `none`: it keeps none. Rejects with `SOURCE_*` if the connection fails.
 */
export async function republish(
  { link, runtime, source }: Republishing,
  subscriptionId: number,
  sequenceNumber: number,
  signal: AbortSignal,
): Promise<NotificationMessage | "gone" | "none"> {
  const asked = { subscriptionId, retransmitSequenceNumber: sequenceNumber };
  try {
    const { notificationMessage } = await link.call("Republish", asked, signal);
    // Only messages with data are kept. Some servers reply with an empty one if they have none.
    if (!notificationMessage.notificationData?.length) return "gone";
    runtime.metrics.counter(republished).add(1, { source });
    return notificationMessage;
  } catch (error) {
    const status = statusOf(error) ?? "";
    if (status === "BadMessageNotAvailable") return "gone";
    if (keepsNone.includes(status)) return "none";
    throw error;
  }
}

/** Counts and logs a message that was sent, did not arrive, and is no longer on the server. */
export function tellLost({ runtime, source }: Omit<Republishing, "link">, sequenceNumber: number): void {
  runtime.metrics.counter(lostNotifications).add(1, { source });
  runtime.log.error({ sequenceNumber }, "the server has lost a notification that did not arrive");
}
