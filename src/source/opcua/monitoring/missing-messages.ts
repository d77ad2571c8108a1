// Fetches notification messages that did not arrive, and tells which of them the server has no more.
import type { NotificationMessage } from "node-opcua-client";
import { type Republishing, republish, tellLost } from "./republish.ts";
import { inOrder, type SequenceTracker } from "./sequence.ts";

export interface MissingMessagesOptions extends Republishing {
  /** Resolves when there is room for more. Rejects with `signal.reason`. */
  readonly room: (signal: AbortSignal) => Promise<void>;
  /** The server has not kept a message that did not arrive. */
  readonly lost: (subscription: number) => void;
}

/** How often a message is looked for while the server says nothing of its subscription. */
const catchUpEveryMs = 1_000;

export class MissingMessages {
  readonly #options: MissingMessagesOptions;
  readonly #trackers: ReadonlyMap<number, SequenceTracker>;
  readonly #deliver: (id: number, message: NotificationMessage, signal: AbortSignal) => Promise<void>;

  /** `trackers`: by subscription. `deliver` takes the messages in their order. */
  constructor(
    options: MissingMessagesOptions,
    trackers: ReadonlyMap<number, SequenceTracker>,
    deliver: (id: number, message: NotificationMessage, signal: AbortSignal) => Promise<void>,
  ) {
    this.#options = options;
    this.#trackers = trackers;
    this.#deliver = deliver;
  }

  /** Those with these numbers, in order. */
  async fetch(id: number, sequenceNumbers: readonly number[], signal: AbortSignal): Promise<void> {
    let found: Awaited<ReturnType<typeof republish>> | undefined;
    for (const sequenceNumber of sequenceNumbers) {
      const lostBefore = typeof found === "string";
      if (found !== "none") found = await republish(this.#options, id, sequenceNumber, signal);
      if (typeof found !== "string") {
        await this.#deliver(id, found, signal);
        continue;
      }
      tellLost(this.#options, sequenceNumber);
      // Before what was sent after it is stored. Of several in a row the first one tells of all.
      if (!lostBefore) this.#options.lost(id);
    }
  }

  /** All that the server says it has of a subscription that hands over what it has kept. */
  async fetchKept(id: number, available: readonly number[], signal: AbortSignal): Promise<void> {
    const last = available.toSorted(inOrder).at(-1);
    const tracker = this.#trackers.get(id);
    if (last === undefined || !tracker) return;
    const { missing, known } = tracker.arrived({ sequenceNumber: last, keepAlive: false, available });
    await this.fetch(id, known ? missing : [...missing, last], signal);
  }

  /**
   * What the server has sent into the connection before this one, or answers requests with that were left behind there, is
   * asked for without waiting until it says something: the next keep-alive may be long in coming. Resolves when the
   * subscription was `heard` of, or there is nothing to ask for. `inTurn`: one after the other with all that arrives.
   */
  async catchUp(
    id: number,
    heard: () => boolean,
    inTurn: <T>(work: () => Promise<T>) => Promise<T>,
    signal: AbortSignal,
  ): Promise<void> {
    const { room, runtime } = this.#options;
    while (!heard()) {
      await room(signal);
      const found = await inTurn(() => this.#fetchNext(id, signal));
      if (found === "none") return;
      if (found === "gone") await runtime.clock.sleep(catchUpEveryMs, signal);
    }
  }

  async #fetchNext(id: number, signal: AbortSignal): Promise<"had" | "gone" | "none"> {
    const tracker = this.#trackers.get(id);
    if (tracker?.next === undefined) return "none";
    const message = await republish(this.#options, id, tracker.next, signal);
    if (typeof message === "string") return message;
    tracker.fetched();
    await this.#deliver(id, message, signal);
    return "had";
  }
}
