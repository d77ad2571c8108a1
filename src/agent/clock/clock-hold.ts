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

const untimedReadings = {
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

export type ClockHold = ReturnType<typeof holdForClock>;

export function holdForClock(source: string, { watch, clock }: HoldParts, { metrics, log }: Runtime) {
  const untimed = metrics.counter(untimedReadings);
  const ahead = metrics.counter(aheadReadings);
  let held: Held[] = [];
  let readings = 0;
  /** When the last deliveries that waited began and ended to wait, in monotonic milliseconds. */
  let heldSince = Number.NEGATIVE_INFINITY;
  let heldUntil = Number.NEGATIVE_INFINITY;

  function keep(delivery: Delivery): void {
    if (held.length === 0) heldSince = clock.monotonic();
    heldUntil = Number.POSITIVE_INFINITY;
    held.push({ delivery, steppedUs: clock.steppedUs });
    readings += readingCount(delivery);
  }

  /** `last`: no delivery follows, so undecided times are decided on current knowledge. */
  function* release(last = false): Generator<Delivery> {
    for (;;) {
      const [first] = held;
      if (!first || mustWait(first.delivery, last)) return;
      const { delivery, steppedUs } = first;
      // Before it is delivered: the caller may end here, and must not get it again.
      held.shift();
      if (held.length === 0) heldUntil = clock.monotonic();
      readings -= readingCount(delivery);
      // Not what this clock has lost by running more slowly: times that were given before could then come again.
      clock.now();
      const byUs = clock.steppedUs - steppedUs;
      yield decided(retimed(delivery, (time) => time + byUs));
    }
  }

  function mustWait(delivery: Delivery, last = false): boolean {
    const { holding, undecided } = watch;
    const ended = last && undecided;
    if ((!holding && !undecided) || ended) return false;
    return delivery.readings.some(({ clock: stampedBy, ahead: isAhead }) =>
      isAhead ? undecided : holding && stampedBy === "agent",
    );
  }

  /** Chooses between device time and arrival time for readings whose device is ahead. */
  function decided(delivery: Delivery): Delivery {
    if (!delivery.readings.some((reading) => reading.ahead)) return delivery;
    const { trusted } = watch;
    const chosen = delivery.readings.flatMap((reading) => {
      const { ahead: lead, ...rest } = reading;
      if (!lead) return reading;
      const isDeviceRight = !trusted || !isStillAhead(lead, reading.time);
      const stored = isDeviceRight ? "device" : lead.otherwise === "drop" ? "dropped" : "arrival";
      ahead.add(1, { source, stored });
      if (stored !== "device") return stored === "dropped" ? [] : rest;
      const { reason: _reason, ...good } = rest;
      // The only reason on a good value was that it had the time of arrival.
      return { ...(reading.quality === "good" ? good : rest), time: lead.time, clock: "device" as const };
    });
    return { ...delivery, readings: chosen, batches: undefined, ack: () => delivery.ack() };
  }

  /** Corrects readings that were stamped before a step of the clock and arrive after it. */
  function straightened(delivery: Delivery): Delivery {
    // First, since it finds the step if no other part has looked at the clock after it.
    const now = clock.now();
    const jumps = clock.jumps(straddlesMs);
    const since = Math.max(heldSince, clock.monotonic() - straddlesMs);
    // Usually. Looking at each reading would cost as much as reading it.
    if (jumps.length === 0 && since > heldUntil) return delivery;
    /**
     * The latest possible time, if it was stamped before none, one or more of the jumps. Smaller steps move it if they
     * have moved deliveries that waited.
     */
    const rightTime = (stamped: number) => {
      let right = stamped + clock.forwardAfter(stamped, since, heldUntil);
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

  return {
    /**
     * Passes deliveries on in order; those with doubtful times wait, and so do all that follow. The result has no
     * `ahead`. When the connection ends, held deliveries that await an acknowledgement are dropped, since the device
     * repeats them.
     */
    async *timed(deliveries: AsyncIterable<Delivery>, signal: AbortSignal): AsyncGenerator<Delivery> {
      const iterator = deliveries[Symbol.asyncIterator]();
      const aborted = whenAborted(signal);
      let next: Promise<IteratorResult<Delivery>> | undefined;
      try {
        for (;;) {
          yield* release();
          const change = () => Promise.race([watch.released.then(() => undefined), aborted]);
          // After an abort, reading continues to the end of the input; see `close`.
          const waits = held.length > 0 && !signal.aborted;
          if (waits && readings >= maxReadings) {
            await change();
            continue;
          }
          next ??= iterator.next();
          const read = await (waits ? Promise.race([next, change()]) : next);
          if (read === undefined) continue;
          next = undefined;
          if (read.done === true) {
            yield* release(true);
            return;
          }
          const delivery = straightened(read.value);
          const isAhead = watch.note(source, latestReadings(delivery));
          if (held.length > 0 || mustWait(delivery)) keep(delivery);
          else yield isAhead ? decided(delivery) : delivery;
        }
      } finally {
        // A lost connection can no longer acknowledge anything.
        held = held.filter(({ delivery }) => !delivery.awaited).map(unacknowledged);
        readings = held.reduce((sum, { delivery }) => sum + readingCount(delivery), 0);
        if (held.length === 0) heldUntil = Math.min(heldUntil, clock.monotonic());
        if (next) next.catch(() => {});
        else await iterator.return?.();
      }
    },
    /** Discards and counts the readings that still wait, since their times are unknown. */
    close(): void {
      if (readings === 0) return;
      untimed.add(readings, { source });
      log.error({ readings }, "readings are not stored: the clock was not set in time");
      held = [];
      readings = 0;
    },
  };
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
