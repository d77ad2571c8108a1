// Detects notification messages that did not arrive, fetches them, and reports those that the server no longer has.
import type { NotificationMessage } from "node-opcua-client";
import type { Runtime } from "../../../core/runtime.ts";
import { type Link, sessionGone } from "../session/link.ts";
import { refusalOf } from "../stack/failure.ts";

export interface MissingMessagesOptions extends Republishing {
  readonly trackers: ReadonlyMap<number, SequenceTracker>;
  /** Receives the messages in order. */
  readonly deliver: (subscription: number, message: NotificationMessage, signal: AbortSignal) => Promise<void>;
  /** Resolves when there is room for more. Rejects with `signal.reason`. */
  readonly room: (signal: AbortSignal) => Promise<void>;
  /** Called if the server no longer has a missing message. */
  readonly lost: (subscription: number) => void;
}

/** Interval of Republish attempts that may succeed later. */
const retryAfterMs = 1_000;

export function missingMessages(options: MissingMessagesOptions) {
  const { trackers, deliver, room, lost, runtime } = options;

  /** `lags`: messages before the first one that the server has are on another agent's disk, so they are not lost. */
  async function fetch(
    id: number,
    sequenceNumbers: readonly number[],
    signal: AbortSignal,
    lags = false,
  ): Promise<void> {
    const tracker = trackers.get(id);
    let mayBeStored = lags;
    let found: Awaited<ReturnType<typeof republish>> | undefined;
    for (const sequenceNumber of sequenceNumbers) {
      const lostBefore = typeof found === "string";
      if (found !== "none") found = await republish(options, id, sequenceNumber, signal);
      if (typeof found !== "string") {
        mayBeStored &&= tracker?.isOld(sequenceNumber) === true;
        await deliver(id, found, signal);
        continue;
      }
      // A server that keeps no messages has also lost those sent after the other agent was killed.
      if (found === "gone" && mayBeStored) continue;
      reportLost(options, sequenceNumber);
      tracker?.lost(sequenceNumber);
      // Report the loss before later messages are stored. One report covers consecutive losses.
      if (!lostBefore) lost(id);
    }
  }

  return {
    fetch,
    /** Fetches all messages that a former subscription still has. */
    async fetchKept(id: number, available: readonly number[], signal: AbortSignal): Promise<void> {
      const last = available.toSorted(inOrder).at(-1);
      const tracker = trackers.get(id);
      if (last === undefined || !tracker) return;
      const { missing, known } = tracker.arrived({ sequenceNumber: last, keepAlive: false, available });
      await fetch(id, known ? missing : [...missing, last], signal);
    },
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
      while (!received()) {
        await room(signal);
        const found = await inTurn(async () => {
          const tracker = trackers.get(id);
          if (tracker?.next === undefined) return "none";
          const message = await republish(options, id, tracker.next, signal);
          if (typeof message === "string") return message;
          tracker.fetched();
          return await deliver(id, message, signal);
        });
        if (found === "none") return;
        if (found === "gone") await runtime.clock.sleep(retryAfterMs, signal);
      }
    },
  };
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

const subscriptionGone = ["BadSubscriptionIdInvalid", "BadNoSubscription"];
/** Statuses of a server that keeps no messages at all. */
const keepsNone = ["BadServiceUnsupported", "BadNotImplemented", "BadNotSupported"];
/** Statuses that say nothing about the message. */
const passing = ["BadInternalError", "BadUnexpectedError"];
/** Attempts with such a status, a second apart. After the last one the message counts as gone. */
const mostAttempts = 3;

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
  for (let attempt = 1; ; attempt++)
    try {
      const { notificationMessage: message } = await link.call("Republish", asked, signal);
      // Only messages with data are kept. A server that lacks the message may reply with an empty one or another.
      if (!message.notificationData?.length || message.sequenceNumber !== sequenceNumber) return "gone";
      runtime.metrics.counter(republished).add(1, { source });
      return message;
    } catch (error) {
      const status = refusalOf(error);
      if (status === undefined || subscriptionGone.includes(status) || sessionGone(error)) throw error;
      // Not all servers answer BadMessageNotAvailable.
      if (!passing.includes(status) || attempt === mostAttempts) return keepsNone.includes(status) ? "none" : "gone";
      await runtime.clock.sleep(retryAfterMs, signal);
    }
}

/** Counts and logs a message that was sent, did not arrive, and is no longer on the server. */
export function reportLost({ runtime, source }: Omit<Republishing, "link">, sequenceNumber: number): void {
  runtime.metrics.counter(lostNotifications).add(1, { source });
  runtime.log.error({ sequenceNumber }, "the server has lost a notification that did not arrive");
}

// Sequence numbers wrap from 2^32-1 to 1 (OPC 10000-4, 5.13.1.1). A keep-alive carries the
// number of the next message, not the last.

const last = 2 ** 32 - 1;
/** If more are missing, only those that the server lists are requested. */
const mostMissing = 10_000;

export interface NotificationHead {
  readonly sequenceNumber: number;
  readonly keepAlive: boolean;
  /** Messages that the server keeps for retransmission. */
  readonly available: readonly number[];
}

export interface Missing {
  /** Messages to request before this one, in order. */
  readonly missing: readonly number[];
  /** The message was received before. */
  readonly known: boolean;
  /** Messages are missing that Republish cannot return. */
  readonly beyond: boolean;
  /** Another agent may have acknowledged the first ones of `missing`. */
  readonly lags: boolean;
}

export class SequenceTracker {
  #next: number | undefined;
  #first: number | undefined;
  /** No message has arrived on this connection. */
  #awaitingFirst = true;
  #lags: boolean;
  /** Messages that could not be fetched. Some servers send out of order and republish nothing. */
  readonly #lost = new Set<number>();

  /**
   * `next`: the first message that is not on disk. Undefined: unknown, after resuming a subscription. `lags`: see
   * `Positions.lags`.
   */
  constructor(next: number | undefined, lags = false) {
    this.#next = next;
    this.#first = next;
    this.#lags = lags;
  }

  /** Number of the next message. Undefined if unknown. */
  get next(): number | undefined {
    return this.#next;
  }

  /** Whether a message was on disk before this connection began. */
  isOld(sequenceNumber: number): boolean {
    return this.#first !== undefined && behind(sequenceNumber, this.#first);
  }

  /** Records that message `next` was fetched before it was announced. */
  fetched(): void {
    if (this.#next !== undefined) this.#next = after(this.#next);
    this.#lags = false;
  }

  /** Records that a missing message could not be fetched. It is not known if it arrives nevertheless. */
  lost(sequenceNumber: number): void {
    const [oldest] = this.#lost.size < mostMissing ? [] : this.#lost;
    if (oldest !== undefined) this.#lost.delete(oldest);
    this.#lost.add(sequenceNumber);
  }

  arrived({ sequenceNumber, keepAlive, available }: NotificationHead): Missing {
    const awaitingFirst = this.#awaitingFirst;
    this.#awaitingFirst = false;
    const old = this.#next !== undefined && behind(sequenceNumber, this.#next);
    // The server has restarted its numbering.
    const renumbered = awaitingFirst && !keepAlive && this.isOld(sequenceNumber);
    // Old numbers now identify other messages.
    if (renumbered) this.#first = undefined;
    // Some servers repeat their last number in a keep-alive instead of the next. Nothing is missing then.
    if (old && !renumbered) {
      const known = !keepAlive && !this.#lost.delete(sequenceNumber);
      return { missing: [], known, beyond: false, lags: false };
    }
    const kept = available.filter((number) => behind(number, sequenceNumber) && !this.#had(number));
    const between = this.#next === undefined || renumbered ? [] : range(this.#next, sequenceNumber);
    this.#next = keepAlive ? sequenceNumber : after(sequenceNumber);
    const lags = this.#lags;
    this.#lags = false;
    // Also request unacknowledged messages that are on disk, so that they get acknowledged.
    const asked = new Set([...(between ?? []), ...(awaitingFirst || !between ? kept : [])]);
    return { missing: [...asked].toSorted(inOrder), known: false, beyond: renumbered || between === undefined, lags };
  }

  /** Whether a message arrived on this connection. */
  #had(number: number): boolean {
    const [first, next] = [this.#first, this.#next];
    return first !== undefined && next !== undefined && !behind(number, first) && behind(number, next);
  }
}

/** Numbers from `from` up to but excluding `to`. Undefined if there are too many. */
function range(from: number, to: number): number[] | undefined {
  const numbers: number[] = [];
  for (let number = from; number !== to; number = after(number)) {
    if (numbers.length >= mostMissing) return undefined;
    numbers.push(number);
  }
  return numbers;
}

export function after(number: number): number {
  return number === last ? 1 : number + 1;
}

/** Comparator for the order of sending. */
export function inOrder(a: number, b: number): number {
  return a === b ? 0 : behind(a, b) ? -1 : 1;
}

/** Whether `a` precedes `b`, with wrap-around. */
export function behind(a: number, b: number): boolean {
  return a !== b && (b - a + last) % last < last / 2;
}

/** Tracks a subscription of an earlier session until its kept messages are stored. */
export class FormerSubscription {
  readonly #over = Promise.withResolvers<void>();
  /** Resolves once it is drained and all its messages are on disk. */
  readonly over = this.#over.promise;
  readonly #open = new Set<number>();
  #ended = false;

  delivered(sequenceNumber: number): void {
    this.#open.add(sequenceNumber);
  }

  acknowledged(sequenceNumber: number): void {
    this.#open.delete(sequenceNumber);
    this.#settle();
  }

  end(): void {
    this.#ended = true;
    this.#settle();
  }

  #settle(): void {
    if (this.#ended && this.#open.size === 0) this.#over.resolve();
  }
}
