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

/** A delivery, with the wall clock and monotonic clock at its arrival. */
interface Held {
  readonly delivery: Delivery;
  readonly wall: number;
  readonly ms: number;
}

export interface HoldParts {
  readonly watch: Pick<ClockWatch, "holding" | "released" | "trusted" | "undecided" | "note">;
  readonly clock: Pick<AgentClock, "now" | "monotonic" | "jump">;
}

export class ClockHold {
  readonly #parts: HoldParts;
  readonly #source: string;
  readonly #runtime: Runtime;
  readonly #untimed;
  readonly #ahead;
  #held: Held[] = [];
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
    this.#held.push({ delivery, wall: clock.now(), ms: clock.monotonic() });
    this.#readings += readingCount(delivery);
  }

  /** `last`: no delivery follows, so undecided times are decided on current knowledge. */
  *#release(last = false): Generator<Delivery> {
    const { clock } = this.#parts;
    for (;;) {
      const [first] = this.#held;
      if (!first || this.#mustWait(first.delivery, last)) return;
      const { delivery, wall, ms } = first;
      // Before it is delivered: the caller may end here, and must not get it again.
      this.#held.shift();
      this.#readings -= readingCount(delivery);
      yield this.#decided(shifted(delivery, clock.now() - (clock.monotonic() - ms) * 1_000 - wall));
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
    // First, since it finds the jump if no other part has looked at the clock after the step.
    const now = clock.now();
    const { jump } = clock;
    if (!jump || jump.agoMs > straddlesMs) return delivery;
    const isOld = ({ time }: Reading) => Math.abs(time + jump.byUs - now) < Math.abs(time - now);
    return delivery.readings.some((reading) => reading.clock === "agent" && isOld(reading))
      ? shifted(delivery, jump.byUs, isOld)
      : delivery;
  }
}

/** Shifts the times of our own clock by `byUs`, in all readings or in those that `which` selects. */
function shifted(delivery: Delivery, byUs: number, which: (reading: Reading) => boolean = () => true): Delivery {
  const right = (reading: Reading): Reading =>
    reading.clock === "device" || !which(reading)
      ? reading
      : { ...reading, time: epochMicros(Math.round(reading.time + byUs)) };
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
