// Queue of readings between socket and pipeline: forms batches, and acknowledges in the order of arrival.
import type { Description, Reading } from "../../../core/source.ts";
import { HandOver } from "../../../lib/flow/abort.ts";
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
export function receiveQueue(options: ReceiveQueueOptions) {
  const handOver = new HandOver();
  const waiting: Batch[] = [];
  /** Batches without acknowledgement, oldest first: those already taken, then the waiting ones. */
  const unacknowledged: Batch[] = [];

  /** The oldest batch that has content. Undefined: none. */
  function takeNow(): Batch | undefined {
    for (let batch = waiting.shift(); batch; batch = waiting.shift()) {
      if (hasContent(batch)) {
        options.onRoom();
        return batch;
      }
      release(batch);
    }
    return undefined;
  }

  /** Marks `batch` as stored. Its packets are acknowledged once all earlier ones are. */
  function release(batch: Batch): void {
    batch.done = true;
    const pending = unacknowledged.findIndex((other) => !other.done);
    const done = unacknowledged.splice(0, pending < 0 ? unacknowledged.length : pending);
    const held = done.length === 1 ? (done[0]?.held ?? []) : done.flatMap((other) => other.held);
    if (held.length > 0) options.acknowledge(held);
  }

  function isFull({ readings, held }: Batch): boolean {
    const { maxReadings } = options;
    return readings.length >= maxReadings || held.length >= maxReadings;
  }

  function open(): Batch {
    const batch: Batch = { readings: [], descriptions: [], held: [], done: false };
    waiting.push(batch);
    unacknowledged.push(batch);
    return batch;
  }

  return {
    get full(): boolean {
      const [first, second] = waiting;
      return second !== undefined || (first !== undefined && isFull(first));
    },
    /** Adds one message: `read` appends its readings to the given batch. */
    put(held: HeldPacket | undefined, read: (into: Pick<Batch, "readings" | "descriptions">) => void): void {
      const { maxReadings } = options;
      let batch = waiting.at(-1);
      if (!batch || isFull(batch)) batch = open();
      const before = batch.readings.length;
      read(batch);
      if (batch.readings.length > maxReadings) {
        // A message is split only if it exceeds a whole batch. Its acknowledgement belongs to the last part.
        const rest = batch.readings.splice(before > 0 ? before : maxReadings);
        for (let at = 0; at < rest.length; at += maxReadings) {
          batch = open();
          batch.readings.push(...rest.slice(at, at + maxReadings));
        }
      }
      if (held !== undefined) batch.held.push(held);
    },
    /** Call after the messages of a turn were added. Wakes the consumer, or acknowledges what needs no storage. */
    settle(): void {
      const [first] = waiting;
      if (!first) return;
      if (hasContent(first)) {
        handOver.notify();
        return;
      }
      waiting.shift();
      release(first);
      options.onRoom();
    },
    /** Resolves with the oldest batch that has content. Rejects as `HandOver.take` does. */
    take(signal: AbortSignal): Promise<Batch> {
      return handOver.take(() => takeNow(), signal);
    },
    takeNow,
    release,
    /** As `HandOver.fail`. */
    fail(error: unknown): void {
      handOver.fail(error);
    },
  };
}

function hasContent({ readings, descriptions }: Batch): boolean {
  return readings.length > 0 || descriptions.length > 0;
}
