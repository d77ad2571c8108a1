// Keeps what a source reads while the clock of the machine is not trusted, and gives it the times it was read at when it is.
// Decides about times of devices that are ahead of that clock.

import { epochMicros } from "../../core/point.ts";
import type { MetricDeclaration, Runtime } from "../../core/runtime.ts";
import type { Delivery, Reading } from "../../core/source.ts";
import { whenAborted } from "../../lib/abort.ts";
import { isStillAhead } from "../../lib/device-time.ts";
import { latestReadings, readingCount } from "../../lib/reading-batch.ts";
import type { AgentClock } from "./agent-clock.ts";
import type { ClockWatch } from "./clock-watch.ts";

/** Of one source. When so many wait no more is read: a device that is acknowledged to keeps what it has. */
const maxReadings = 100_000;
/** What was read before a step of the clock is delivered after it by this time. */
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

/** A delivery, and what both clocks said when it came. */
interface Held {
  readonly delivery: Delivery;
  readonly wall: number;
  readonly ms: number;
}

export interface HoldParts {
  readonly watch: Pick<ClockWatch, "holding" | "released" | "trusted" | "undecided" | "note">;
  readonly clock: Pick<AgentClock, "now" | "monotonic" | "jump">;
}

/** Of one source, over all its connections. */
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
   * The same deliveries; those with times of this machine, and all that follow them, wait while its clock is not trusted. No
   * reading has a time that is `ahead` any longer: while it is undecided whose clock is wrong, it waits too.
   * What a device waits to have acknowledged is not kept over the end of its connection: it comes again.
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
        // An agent that stops reads to the end, whatever waits: see `close`.
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
      // A connection that was lost acknowledges nothing any longer.
      this.#held = this.#held.filter(({ delivery }) => !delivery.awaited).map(unacknowledged);
      this.#readings = this.#held.reduce((sum, { delivery }) => sum + readingCount(delivery), 0);
      if (next) next.catch(() => {});
      else await iterator.return?.();
    }
  }

  /** The end: what still waits has no times and is counted. */
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

  /** `last`: nothing follows, and what is undecided is decided as it stands. */
  *#release(last = false): Generator<Delivery> {
    const { clock } = this.#parts;
    for (;;) {
      const [first] = this.#held;
      if (!first || this.#mustWait(first.delivery, last)) return;
      const { delivery, wall, ms } = first;
      yield this.#decided(shifted(delivery, clock.now() - (clock.monotonic() - ms) * 1_000 - wall));
      this.#held.shift();
      this.#readings -= readingCount(delivery);
    }
  }

  #mustWait(delivery: Delivery, last = false): boolean {
    const { holding, undecided } = this.#parts.watch;
    const ended = last && undecided;
    if ((!holding && !undecided) || ended) return false;
    return delivery.readings.some(({ clock, ahead }) => (ahead ? undecided : holding && clock === "agent"));
  }

  /** Which of two times a reading has, where that of the device is ahead. */
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
      // The reason of a good value was only that it had the time of arrival.
      const kept = reading.quality === "good" ? good : rest;
      return { ...kept, time: ahead.time, clock: "device" as const };
    });
    return { ...delivery, readings, batches: undefined, ack: () => delivery.ack() };
  }

  /** What was read before the clock was set, and comes after it, gets the time it has on the clock as it is now. */
  #straightened(delivery: Delivery): Delivery {
    const { clock } = this.#parts;
    const { jump } = clock;
    if (!jump || jump.agoMs > straddlesMs) return delivery;
    const now = clock.now();
    const isOld = ({ time }: Reading) => Math.abs(time + jump.byUs - now) < Math.abs(time - now);
    return delivery.readings.some((reading) => reading.clock === "agent" && isOld(reading))
      ? shifted(delivery, jump.byUs, isOld)
      : delivery;
  }
}

/** With the times of our clock moved by `byUs`, all or those of some. */
function shifted(delivery: Delivery, byUs: number, which: (reading: Reading) => boolean = () => true): Delivery {
  const right = (reading: Reading): Reading =>
    reading.clock === "device" || !which(reading)
      ? reading
      : { ...reading, time: epochMicros(Math.round(reading.time + byUs)) };
  return {
    ...delivery,
    readings: delivery.readings.map(right),
    batches: undefined,
    // It may be a method that needs the delivery itself.
    ack: () => delivery.ack(),
  };
}

function unacknowledged({ delivery, ...held }: Held): Held {
  return { ...held, delivery: { ...delivery, ack() {} } };
}
