// Keeps what a source reads while the clock of the machine is not trusted, and gives it the times it was read at when it is.

import { epochMicros } from "../core/point.ts";
import type { MetricDeclaration, Runtime } from "../core/runtime.ts";
import type { Delivery, Reading } from "../core/source.ts";
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

/** A delivery, and what both clocks said when it came. */
interface Held {
  readonly delivery: Delivery;
  readonly wall: number;
  readonly ms: number;
}

export interface HoldParts {
  readonly watch: Pick<ClockWatch, "holding" | "released">;
  readonly clock: Pick<AgentClock, "now" | "monotonic" | "jump">;
}

/** Of one source, over all its connections. */
export class ClockHold {
  readonly #parts: HoldParts;
  readonly #source: string;
  readonly #runtime: Runtime;
  readonly #untimed;
  #held: Held[] = [];
  #readings = 0;

  constructor(source: string, parts: HoldParts, runtime: Runtime) {
    this.#source = source;
    this.#parts = parts;
    this.#runtime = runtime;
    this.#untimed = runtime.metrics.counter(untimed);
  }

  /**
   * The same deliveries; those with times of this machine, and all that follow them, wait while its clock is not trusted.
   * What a device waits to have acknowledged is not kept over the end of its connection: it comes again.
   */
  async *timed(deliveries: AsyncIterable<Delivery>, signal: AbortSignal): AsyncGenerator<Delivery> {
    const { watch } = this.#parts;
    const iterator = deliveries[Symbol.asyncIterator]();
    const aborted = once(signal);
    let next: Promise<IteratorResult<Delivery>> | undefined;
    try {
      for (;;) {
        if (this.#held.length > 0 && !watch.holding) yield* this.#release();
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
        if (read.done === true) return;
        const delivery = this.#straightened(read.value);
        const isOurs = delivery.readings.some(({ clock }) => clock === "agent");
        if (this.#held.length > 0 || (isOurs && watch.holding)) this.#hold(delivery);
        else yield delivery;
      }
    } finally {
      // A connection that was lost acknowledges nothing any longer.
      this.#held = this.#held.filter(({ delivery }) => !delivery.awaited).map(unacknowledged);
      this.#readings = this.#held.reduce((sum, { delivery }) => sum + delivery.readings.length, 0);
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
    this.#readings += delivery.readings.length;
  }

  *#release(): Generator<Delivery> {
    const { clock } = this.#parts;
    while (this.#held.length > 0) {
      const [first] = this.#held;
      if (!first) return;
      const { delivery, wall, ms } = first;
      yield shifted(delivery, clock.now() - (clock.monotonic() - ms) * 1_000 - wall);
      this.#held.shift();
      this.#readings -= delivery.readings.length;
    }
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
    // It may be a method that needs the delivery itself.
    ack: () => delivery.ack(),
  };
}

function unacknowledged({ delivery, ...held }: Held): Held {
  return { ...held, delivery: { ...delivery, ack() {} } };
}

function once(signal: AbortSignal): Promise<undefined> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve(undefined);
    else signal.addEventListener("abort", () => resolve(undefined), { once: true });
  });
}
