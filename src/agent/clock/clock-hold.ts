// Holds readings while the machine's clock is not trusted, then corrects their times.

import { epochMicros } from "../../core/point.ts";
import type { MetricDeclaration, Runtime } from "../../core/runtime.ts";
import type { Delivery, Reading } from "../../core/source.ts";
import { whenAborted } from "../../lib/flow/abort.ts";
import { isStillAhead } from "../../lib/readings/device-time.ts";
import { latestReadings, readingCount } from "../../lib/readings/reading-batch.ts";
import type { AgentClock } from "./agent-clock.ts";
import type { ClockWatch } from "./clock-watch.ts";

/** Limit of one source. At the limit reading stops; a device that waits for acknowledgements then keeps its values. */
const maxReadings = 100_000;
/** A reading taken before a step of the clock arrives at most this long after it. */
const straddlesMs = 60_000;

const untimed = {
  name: "source_untimed_readings_total",
  help: "Readings that were not stored since the agent ended before the clock was set",
  labels: ["source"],
} as const satisfies MetricDeclaration<"source">;

const aheadReadings = {
  name: "source_ahead_readings_total",
  help: "Readings whose device gave a time further ahead of this machine than maxAhead, by what became of them: stored with the time of the device, since the clock of this machine is not trusted, with that of arrival, or dropped",
  labels: ["source", "stored"],
} as const satisfies MetricDeclaration<"source" | "stored">;

/** A delivery, with the steps of the clock before its arrival. */
interface Held {
  readonly delivery: Delivery;
  readonly steppedUs: number;
}

export interface HoldParts {
  readonly watch: Pick<ClockWatch, "holding" | "released" | "trusted" | "undecided" | "note">;
  readonly clock: Pick<AgentClock, "now" | "monotonic" | "steppedUs" | "jumps" | "forwardAfter">;
}

export class ClockHold {
  readonly #parts: HoldParts;
  readonly #source: string;
  readonly #runtime: Runtime;
  readonly #untimed;
  readonly #ahead;
  #held: Held[] = [];
  /** When the last deliveries that waited began and ended to wait, in monotonic milliseconds. */
  #heldSince = Number.NEGATIVE_INFINITY;
  #heldUntil = Number.NEGATIVE_INFINITY;
  #readings = 0;

  constructor(source: string, parts: HoldParts, runtime: Runtime) {
    this.#source = source;
    this.#parts = parts;
    this.#runtime = runtime;
    this.#untimed = runtime.metrics.counter(untimed);
    this.#ahead = runtime.metrics.counter(aheadReadings);
  }

  /**
   * Passes deliveries on in order; those with doubtful times wait, and so do all that follow. The result has no
   * `ahead`. When the connection ends, held deliveries that await an acknowledgement are dropped, since the device
   * repeats them.
   */
  async *timed(deliveries: AsyncIterable<Delivery>, signal: AbortSignal): AsyncGenerator<Delivery> {
    const { watch } = this.#parts;
    const iterator = deliveries[Symbol.asyncIterator]();
    const aborted = whenAborted(signal);
    let next: Promise<IteratorResult<Delivery>> | undefined;
    try {
      for (;;) {
        yield* this.#release();
        const change = () => Promise.race([watch.released.then(() => undefined), aborted]);
        // After an abort, reading continues to the end of the input; see `close`.
        const waits = this.#held.length > 0 && !signal.aborted;
        if (waits && this.#readings >= maxReadings) {
          await change();
          continue;
        }
        next ??= iterator.next();
        const read = await (waits ? Promise.race([next, change()]) : next);
        if (read === undefined) continue;
        next = undefined;
        if (read.done === true) {
          yield* this.#release(true);
          return;
        }
        const delivery = this.#straightened(read.value);
        const isAhead = watch.note(this.#source, latestReadings(delivery));
        if (this.#held.length > 0 || this.#mustWait(delivery)) this.#hold(delivery);
        else yield isAhead ? this.#decided(delivery) : delivery;
      }
    } finally {
      // A lost connection can no longer acknowledge anything.
      this.#held = this.#held.filter(({ delivery }) => !delivery.awaited).map(unacknowledged);
      this.#readings = this.#held.reduce((sum, { delivery }) => sum + readingCount(delivery), 0);
      if (this.#held.length === 0) this.#heldUntil = Math.min(this.#heldUntil, this.#parts.clock.monotonic());
      if (next) next.catch(() => {});
      else await iterator.return?.();
    }
  }

  /** Discards and counts the readings that still wait, since their times are unknown. */
  close(): void {
    if (this.#readings === 0) return;
    this.#untimed.add(this.#readings, { source: this.#source });
    this.#runtime.log.error({ readings: this.#readings }, "readings are not stored: the clock was not set in time");
    this.#held = [];
    this.#readings = 0;
  }

  #hold(delivery: Delivery): void {
    const { clock } = this.#parts;
    if (this.#held.length === 0) this.#heldSince = clock.monotonic();
    this.#heldUntil = Number.POSITIVE_INFINITY;
    this.#held.push({ delivery, steppedUs: clock.steppedUs });
    this.#readings += readingCount(delivery);
  }

  /** `last`: no delivery follows, so undecided times are decided on current knowledge. */
  *#release(last = false): Generator<Delivery> {
    const { clock } = this.#parts;
    for (;;) {
      const [first] = this.#held;
      if (!first || this.#mustWait(first.delivery, last)) return;
      const { delivery, steppedUs } = first;
      // Before it is delivered: the caller may end here, and must not get it again.
      this.#held.shift();
      if (this.#held.length === 0) this.#heldUntil = clock.monotonic();
      this.#readings -= readingCount(delivery);
      // Not what this clock has lost by running more slowly: times that were given before could then come again.
      clock.now();
      const byUs = clock.steppedUs - steppedUs;
      yield this.#decided(retimed(delivery, (time) => time + byUs));
    }
  }

  #mustWait(delivery: Delivery, last = false): boolean {
    const { holding, undecided } = this.#parts.watch;
    const ended = last && undecided;
    if ((!holding && !undecided) || ended) return false;
    return delivery.readings.some(({ clock, ahead }) => (ahead ? undecided : holding && clock === "agent"));
  }

  /** Chooses between device time and arrival time for readings whose device is ahead. */
  #decided(delivery: Delivery): Delivery {
    if (!delivery.readings.some(({ ahead }) => ahead)) return delivery;
    const { trusted } = this.#parts.watch;
    const readings = delivery.readings.flatMap((reading) => {
      const { ahead, ...rest } = reading;
      if (!ahead) return reading;
      const keep = !trusted || !isStillAhead(ahead, reading.time);
      const stored = keep ? "device" : ahead.otherwise === "drop" ? "dropped" : "arrival";
      this.#ahead.add(1, { source: this.#source, stored });
      if (stored !== "device") return stored === "dropped" ? [] : rest;
      const { reason: _reason, ...good } = rest;
      // The only reason on a good value was that it had the time of arrival.
      const kept = reading.quality === "good" ? good : rest;
      return { ...kept, time: ahead.time, clock: "device" as const };
    });
    return { ...delivery, readings, batches: undefined, ack: () => delivery.ack() };
  }

  /** Corrects readings that were stamped before a step of the clock and arrive after it. */
  #straightened(delivery: Delivery): Delivery {
    const { clock } = this.#parts;
    // First, since it finds the step if no other part has looked at the clock after it.
    const now = clock.now();
    const jumps = clock.jumps(straddlesMs);
    const since = Math.max(this.#heldSince, clock.monotonic() - straddlesMs);
    // Usually. Looking at each reading would cost as much as reading it.
    if (jumps.length === 0 && since > this.#heldUntil) return delivery;
    /**
     * The latest possible time, if it was stamped before none, one or more of the jumps. Smaller steps move it if they
     * have moved deliveries that waited.
     */
    const rightTime = (stamped: number) => {
      let right = stamped + clock.forwardAfter(stamped, since, this.#heldUntil);
      let time = stamped;
      for (const byUs of jumps.toReversed()) {
        time += byUs;
        if (time <= now && (right > now || time > right)) right = time;
      }
      return right;
    };
    return delivery.readings.some(({ clock: stampedBy, time }) => stampedBy === "agent" && rightTime(time) !== time)
      ? retimed(delivery, rightTime)
      : delivery;
  }
}

/** Changes the times of our own clock. */
function retimed(delivery: Delivery, timeOf: (time: number) => number): Delivery {
  const right = (reading: Reading): Reading =>
    reading.clock === "device" ? reading : { ...reading, time: epochMicros(Math.round(timeOf(reading.time))) };
  return {
    ...delivery,
    readings: delivery.readings.map(right),
    batches: undefined,
    // `ack` may be a method that needs its `this`.
    ack: () => delivery.ack(),
  };
}

function unacknowledged({ delivery, ...held }: Held): Held {
  return { ...held, delivery: { ...delivery, ack() {} } };
}
