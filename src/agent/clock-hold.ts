// Keeps what a source reads while the clock of the machine is not set, and gives it the times it was read at when it is.

import { epochMicros } from "../core/point.ts";
import type { Clock, MetricDeclaration, Runtime } from "../core/runtime.ts";
import type { Delivery, Reading } from "../core/source.ts";
import type { ClockWatch } from "./clock-watch.ts";

/** Of one source. When so many wait no more is read: a device that is acknowledged to keeps what it has. */
const maxReadings = 100_000;

const untimed = {
  name: "source_untimed_readings_total",
  help: "Readings that were not stored since the agent ended before the clock was set",
  labels: ["source"],
} as const satisfies MetricDeclaration<"source">;

/** A delivery, and what both clocks said when it came. */
interface Held {
  readonly delivery: Delivery;
  readonly wall: number;
  readonly ms: number;
}

/** Of one source, over all its connections. */
export class ClockHold {
  readonly #watch: Pick<ClockWatch, "trusted" | "set">;
  readonly #source: string;
  readonly #runtime: Runtime;
  readonly #untimed;
  #held: Held[] = [];
  #readings = 0;

  constructor(source: string, watch: Pick<ClockWatch, "trusted" | "set">, runtime: Runtime) {
    this.#source = source;
    this.#watch = watch;
    this.#runtime = runtime;
    this.#untimed = runtime.metrics.counter(untimed);
  }

  /**
   * The same deliveries; those with times of this machine, and all that follow them, wait until its clock is set. What a
   * device waits to have acknowledged is not kept over the end of its connection: it comes again.
   */
  timed(deliveries: AsyncIterable<Delivery>, signal: AbortSignal): AsyncIterable<Delivery> {
    return this.#watch.trusted && this.#held.length === 0 ? deliveries : this.#holding(deliveries, signal);
  }

  /** The end: what still waits has no times and is counted. */
  close(): void {
    if (this.#readings === 0) return;
    this.#untimed.add(this.#readings, { source: this.#source });
    this.#runtime.log.error({ readings: this.#readings }, "readings are not stored: the clock was not set in time");
    this.#held = [];
    this.#readings = 0;
  }

  async *#holding(deliveries: AsyncIterable<Delivery>, signal: AbortSignal): AsyncGenerator<Delivery> {
    const iterator = deliveries[Symbol.asyncIterator]();
    const set = Promise.race([this.#watch.set, aborted(signal)]).then(() => undefined);
    let next: Promise<IteratorResult<Delivery>> | undefined;
    try {
      while (!this.#watch.trusted && !signal.aborted) {
        if (this.#readings >= maxReadings) {
          await set;
          continue;
        }
        next ??= iterator.next();
        const result = await Promise.race([next, set]);
        if (result === undefined) continue;
        next = undefined;
        if (result.done === true) return;
        if (this.#held.length === 0 && result.value.readings.every(({ clock }) => clock === "device"))
          yield result.value;
        else this.#hold(result.value);
      }
      // An agent that stops before cannot know the times: see `close`.
      if (this.#watch.trusted) yield* this.#stamped();
      for (;;) {
        const result = await (next ?? iterator.next());
        next = undefined;
        if (result.done === true) return;
        if (this.#watch.trusted) yield result.value;
        else this.#hold(result.value);
      }
    } finally {
      // A connection that was lost acknowledges nothing any longer.
      this.#held = this.#held.filter(({ delivery }) => !delivery.awaited).map(unacknowledged);
      this.#readings = this.#held.reduce((sum, { delivery }) => sum + delivery.readings.length, 0);
      if (next) next.catch(() => {});
      else await iterator.return?.();
    }
  }

  #hold(delivery: Delivery): void {
    const { clock } = this.#runtime;
    this.#held.push({ delivery, wall: clock.now(), ms: clock.monotonic() });
    this.#readings += delivery.readings.length;
  }

  *#stamped(): Generator<Delivery> {
    while (this.#held.length > 0) {
      const [first] = this.#held;
      if (!first) return;
      yield stamped(first, this.#runtime.clock);
      this.#held.shift();
      this.#readings -= first.delivery.readings.length;
    }
  }
}

/** What its times would have been on the clock as it is now. */
function stamped({ delivery, wall, ms }: Held, clock: Clock): Delivery {
  const shift = clock.now() - (clock.monotonic() - ms) * 1_000 - wall;
  const right = (reading: Reading): Reading =>
    reading.clock === "device" ? reading : { ...reading, time: epochMicros(Math.round(reading.time + shift)) };
  return {
    ...delivery,
    readings: delivery.readings.map(right),
    // It may be a method that needs the delivery itself.
    ack: () => delivery.ack(),
  };
}

function unacknowledged({ delivery, ...held }: Held): Held {
  return { ...held, delivery: { ...delivery, ack() {} } };
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve(), { once: true });
  });
}
