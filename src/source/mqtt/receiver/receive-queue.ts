// Queue of readings between socket and pipeline: forms batches, and acknowledges in the order of arrival.
import type { Description, Reading } from "../../../core/source.ts";
import { HandOver } from "../../../lib/flow/hand-over.ts";
import type { HeldPacket } from "../connection/packet-reader.ts";

export interface Batch {
  readonly readings: Reading[];
  readonly descriptions: Description[];
  /** Packets with a pending acknowledgement, in order of arrival. */
  readonly held: HeldPacket[];
  /** Whether the whole batch is on disk or needs no storage. */
  done: boolean;
}

export interface ReceiveQueueOptions {
  /** Most readings, and most messages, of a batch. */
  readonly maxReadings: number;
  /** Writes acknowledgements in this order. */
  readonly acknowledge: (held: readonly HeldPacket[]) => void;
  /** Called when a batch was taken, so there may be space again. */
  readonly onRoom: () => void;
}

/**
 * FIFO for one consumer. Holds one full batch and the readings of the message that filled it. The producer must then
 * wait for `onRoom`. Packets of an earlier batch are acknowledged before those of a later one, regardless of which is
 * stored first.
 */
export class ReceiveQueue {
  readonly #options: ReceiveQueueOptions;
  readonly #handOver = new HandOver();
  #waiting: Batch[] = [];
  /** Batches without acknowledgement, oldest first: those already taken, then the waiting ones. */
  #unacknowledged: Batch[] = [];

  constructor(options: ReceiveQueueOptions) {
    this.#options = options;
  }

  get full(): boolean {
    const [first, second] = this.#waiting;
    return second !== undefined || (first !== undefined && this.#isFull(first));
  }

  /** Adds one message: `read` appends its readings to the given batch. */
  put(held: HeldPacket | undefined, read: (into: Pick<Batch, "readings" | "descriptions">) => void): void {
    const { maxReadings } = this.#options;
    let batch = this.#waiting.at(-1);
    if (!batch || this.#isFull(batch)) batch = this.#open();
    const before = batch.readings.length;
    read(batch);
    if (batch.readings.length > maxReadings) {
      // A message is split only if it exceeds a whole batch. Its acknowledgement belongs to the last part.
      const rest = batch.readings.splice(before > 0 ? before : maxReadings);
      for (let at = 0; at < rest.length; at += maxReadings) {
        batch = this.#open();
        batch.readings.push(...rest.slice(at, at + maxReadings));
      }
    }
    if (held !== undefined) batch.held.push(held);
  }

  /** Call after the messages of a turn were added. Wakes the consumer, or acknowledges what needs no storage. */
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

  /** Resolves with the oldest batch that has content. Rejects as `HandOver.take` does. */
  take(signal: AbortSignal): Promise<Batch> {
    return this.#handOver.take(() => this.takeNow(), signal);
  }

  /** The oldest batch that has content. Undefined: none. */
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

  /** Marks `batch` as stored. Its packets are acknowledged once all earlier ones are. */
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
