// Readings between the socket and the pipeline: gathered into batches, acknowledged in the order they came.
import type { Description, Reading } from "../../../core/source.ts";
import { HandOver } from "../../../lib/hand-over.ts";
import type { HeldPacket } from "../connection/message.ts";

/** Messages that are stored together. */
export interface Batch {
  readonly readings: Reading[];
  readonly descriptions: Description[];
  /** Packets that wait for an acknowledgement, in the order they came. */
  readonly held: HeldPacket[];
  /** Whether all of it is on disk, or need not be. */
  done: boolean;
}

export interface InboxOptions {
  /** Readings of one batch, and messages of one. */
  readonly maxReadings: number;
  /** Writes acknowledgements, in this order. */
  readonly acknowledge: (held: readonly HeldPacket[]) => void;
  /** Called when a batch has gone, so that there may be room again. */
  readonly onRoom: () => void;
}

/**
 * First in, first out, for one consumer. Holds one full batch and the readings of the message that filled it; who puts
 * more in must wait for `onRoom`. Packets of an earlier batch are acknowledged before those of a later one, whichever is
 * stored first.
 */
export class Inbox {
  readonly #options: InboxOptions;
  readonly #handOver = new HandOver();
  #waiting: Batch[] = [];
  /** Every batch that is not acknowledged yet, oldest first: taken ones, then those that wait. */
  #unacknowledged: Batch[] = [];

  constructor(options: InboxOptions) {
    this.#options = options;
  }

  get full(): boolean {
    const [first, second] = this.#waiting;
    return second !== undefined || (first !== undefined && this.#isFull(first));
  }

  /** Puts one message in: `read` adds its readings to the batch it is given. */
  put(held: HeldPacket | undefined, read: (into: Pick<Batch, "readings" | "descriptions">) => void): void {
    const { maxReadings } = this.#options;
    let batch = this.#waiting.at(-1);
    if (!batch || this.#isFull(batch)) batch = this.#open();
    const before = batch.readings.length;
    read(batch);
    if (batch.readings.length > maxReadings) {
      // A message is torn only when it does not fit into a batch of its own. It is acknowledged with the last of it.
      const rest = batch.readings.splice(before > 0 ? before : maxReadings);
      for (let at = 0; at < rest.length; at += maxReadings) {
        batch = this.#open();
        batch.readings.push(...rest.slice(at, at + maxReadings));
      }
    }
    if (held !== undefined) batch.held.push(held);
  }

  /** To be called when the messages that arrived together have been put in: wakes the consumer, acknowledges what needs no storing. */
  settle(): void {
    const [first] = this.#waiting;
    if (!first) return;
    if (hasContent(first)) {
      this.#handOver.notify();
      return;
    }
    this.#waiting.shift();
    this.release(first);
    this.#options.onRoom();
  }

  /** Resolves with the oldest batch, which has readings. Rejects as `HandOver.take` does. */
  take(signal: AbortSignal): Promise<Batch> {
    return this.#handOver.take(() => this.takeNow(), signal);
  }

  /** The oldest batch that has readings; undefined: none waits. */
  takeNow(): Batch | undefined {
    for (let batch = this.#waiting.shift(); batch; batch = this.#waiting.shift()) {
      if (hasContent(batch)) {
        this.#options.onRoom();
        return batch;
      }
      this.release(batch);
    }
    return undefined;
  }

  /** `batch` is on disk: its packets are acknowledged as soon as those before them are. */
  release(batch: Batch): void {
    batch.done = true;
    const pending = this.#unacknowledged.findIndex((other) => !other.done);
    const done = this.#unacknowledged.splice(0, pending < 0 ? this.#unacknowledged.length : pending);
    const held = done.length === 1 ? (done[0]?.held ?? []) : done.flatMap((other) => other.held);
    if (held.length > 0) this.#options.acknowledge(held);
  }

  /** As `HandOver.fail`. */
  fail(error: unknown): void {
    this.#handOver.fail(error);
  }

  #isFull({ readings, held }: Batch): boolean {
    const { maxReadings } = this.#options;
    return readings.length >= maxReadings || held.length >= maxReadings;
  }

  #open(): Batch {
    const batch: Batch = { readings: [], descriptions: [], held: [], done: false };
    this.#waiting.push(batch);
    this.#unacknowledged.push(batch);
    return batch;
  }
}

function hasContent({ readings, descriptions }: Batch): boolean {
  return readings.length > 0 || descriptions.length > 0;
}
