// Queue of readings between socket and pipeline: forms batches, acknowledges in the order of arrival, and requests an
// immediate commit when the broker sends no more before an acknowledgement.
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
  /** As `Delivery.hurry`. Undefined: no acknowledgement is pending, or the batch was not taken. */
  hurry?: Promise<void>;
}

export interface ReceiveQueueOptions {
  /** Most readings, and most messages, of a batch. */
  readonly maxReadings: number;
  /** As in `SendWindow`. */
  readonly receiveMaximum?: number | undefined;
  /** Monotonic milliseconds. */
  readonly monotonic: () => number;
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
  const { maxReadings, monotonic } = options;
  const window = new SendWindow(options.receiveMaximum);
  /** Messages since the last `settle` that need an acknowledgement. */
  let arrived = 0;
  const handOver = new HandOver();
  const waiting: Batch[] = [];
  /** Batches without acknowledgement, oldest first: those already taken, then the waiting ones. */
  const unacknowledged: Batch[] = [];

  /** The oldest batch that has content. Undefined: none. */
  function takeNow(): Batch | undefined {
    for (let batch = waiting.shift(); batch; batch = waiting.shift()) {
      if (hasContent(batch)) {
        options.onRoom();
        if (batch.held.length > 0) batch.hurry = new Promise((resolve) => window.waiting(monotonic(), resolve));
        return batch;
      }
      release(batch);
    }
    return undefined;
  }

  /** Marks `batch` as stored. Its packets are acknowledged once all earlier ones are. */
  function release(batch: Batch): void {
    batch.done = true;
    if (batch.hurry) window.stored(monotonic());
    const pending = unacknowledged.findIndex((other) => !other.done);
    const done = unacknowledged.splice(0, pending < 0 ? unacknowledged.length : pending);
    const held = done.length === 1 ? (done[0]?.held ?? []) : done.flatMap((other) => other.held);
    if (held.length === 0) return;
    window.acknowledged(held.length);
    options.acknowledge(held);
  }

  function isFull({ readings, held }: Batch): boolean {
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
      if (held === undefined) return;
      batch.held.push(held);
      arrived++;
    },
    /** Call after the messages of a turn were added. Wakes the consumer, or acknowledges what needs no storage. */
    settle(): void {
      window.received(arrived, monotonic());
      arrived = 0;
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
    take: (signal: AbortSignal): Promise<Batch> => handOver.take(takeNow, signal),
    takeNow,
    release,
    /** As `HandOver.fail`. */
    fail: (error: unknown): void => handOver.fail(error),
  };
}

function hasContent({ readings, descriptions }: Batch): boolean {
  return readings.length > 0 || descriptions.length > 0;
}

// Detects that the broker has stopped sending, or soon will, until messages are acknowledged. A commit that waits for
// more messages is then useless.
//
// A broker limits the number of unacknowledged QoS 1 and 2 messages, its send window. With MQTT 5, the receive maximum
// is the upper bound, but brokers have their own limits (EMQX: 32). With 3.1.1, no packet carries the limit (mosquitto
// and VerneMQ: 20). So the window is learned:
//
//   in flight   20 |      ______________________          The stream stalls: nothing arrives during the second half
//                  |   __/                                of a wait. After two stalls in a row, the number in flight,
//                0 |__/                                   here 20, is taken as the window.
//                  +---------+---------+-------> time
//                  wait      half      commit
//
// From then on, a commit is due at half the window, so that the broker continues to send during the sync. While the
// window was recently full, a commit is due at once. The broker then has a backlog, and its throughput is the window
// divided by the acknowledgement delay. A slow stream also stalls, but its commits are few. To tell both apart, a wait
// sometimes runs to its end. More messages in flight than the window disprove it.

/** With more messages in flight, a commit does not wait, since its cost per message is negligible. */
const enough = 256;
/** Shortest wait that is evaluated, in milliseconds. It distinguishes stalls from pauses between packets. */
const leastWaitMs = 20;
/** How long a full window counts as full, in milliseconds: more than the round trip to most brokers. */
const stillFullMs = 100;
/** Milliseconds until a learned window is tested again; doubles after each test that confirms it. */
const firstProbeMs = 1_000;
const lastProbeMs = 64_000;

interface Wait {
  readonly since: number;
  /** Whether the wait ignores the learned window and runs to its end. */
  readonly isProbe: boolean;
  readonly hurry: () => void;
  hurried: boolean;
}

/** The send window of one connection. Times are monotonic milliseconds. */
export class SendWindow {
  readonly #most: number;
  #inFlight = 0;
  #arrivedAt = 0;
  /** In messages. Infinite: no window was detected. */
  #learned = Number.POSITIVE_INFINITY;
  /** Messages in flight when the previous wait stalled; 0: it did not. */
  #stalledAt = 0;
  /** Until this time, the window counts as recently full. */
  #fullUntil = 0;
  #probeMs = firstProbeMs;
  #probeAt = 0;
  #wait: Wait | undefined;

  /** `receiveMaximum`: upper bound of unacknowledged messages, if known. */
  constructor(receiveMaximum = 65_535) {
    this.#most = Math.min(enough, receiveMaximum / 2);
  }

  /** Call when messages that need an acknowledgement arrive. */
  received(messages: number, now: number): void {
    if (messages === 0) return;
    this.#inFlight += messages;
    this.#arrivedAt = now;
    if (this.#inFlight > this.#learned) this.#disprove(now);
    if (this.#inFlight >= this.#learned) this.#fullUntil = now + stillFullMs;
    this.#hurryWhenFilling();
  }

  /** Starts a wait before a commit. Calls `hurry` once the commit should not be delayed further. */
  waiting(now: number, hurry: () => void): void {
    const isProbe = Number.isFinite(this.#learned) && now >= this.#probeAt;
    this.#wait = { since: now, isProbe, hurry, hurried: false };
    if (now < this.#fullUntil && !isProbe) this.#hurry(this.#wait);
    this.#hurryWhenFilling();
  }

  /** Ends the wait: its messages are stored and will be acknowledged. */
  stored(now: number): void {
    if (this.#wait && !this.#wait.hurried) this.#judge(this.#wait, now);
    this.#wait = undefined;
  }

  acknowledged(messages: number): void {
    this.#inFlight -= messages;
  }

  #hurryWhenFilling(): void {
    const wait = this.#wait;
    if (!wait || wait.hurried) return;
    const limit = wait.isProbe ? this.#most : Math.min(this.#most, this.#learned / 2);
    if (this.#inFlight >= limit) this.#hurry(wait);
  }

  #hurry(wait: Wait): void {
    wait.hurried = true;
    wait.hurry();
  }

  /** Learns from a wait that was not shortened. */
  #judge({ since, isProbe }: Wait, now: number): void {
    if (isProbe && Number.isFinite(this.#learned)) {
      this.#probeMs = Math.min(lastProbeMs, 2 * this.#probeMs);
      this.#probeAt = now + this.#probeMs;
    }
    const waited = now - since;
    const stalled = waited >= leastWaitMs && now - this.#arrivedAt >= waited / 2;
    if (stalled && this.#stalledAt > 0) {
      if (!Number.isFinite(this.#learned)) this.#probeAt = now + this.#probeMs;
      this.#learned = Math.max(this.#stalledAt, this.#inFlight);
    }
    this.#stalledAt = stalled ? this.#inFlight : 0;
  }

  /** More messages are in flight than the learned window. If a probe shows it, the window is unknown again. */
  #disprove(now: number): void {
    this.#learned = this.#wait?.isProbe ? Number.POSITIVE_INFINITY : this.#inFlight;
    this.#stalledAt = 0;
    this.#probeMs = firstProbeMs;
    this.#probeAt = Math.min(this.#probeAt, now + firstProbeMs);
  }
}
