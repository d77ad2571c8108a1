// A live Modbus connection: polls every target on its schedule and delivers the readings.
import type { ReadingBatch } from "../../../core/reading.ts";
import type { MetricDeclaration, Runtime } from "../../../core/runtime.ts";
import type { Delivery, Source } from "../../../core/source.ts";
import { isAbort } from "../../../lib/flow/abort.ts";
import { batchDelivery } from "../../../lib/readings/reading-batch.ts";
import { silenceHint } from "../config/endpoint.ts";
import type { ModbusOptions } from "../config/options.ts";
import type { ReadRequest, UnitRequest } from "../config/pdu.ts";
import type { ModbusConfig, PollTarget } from "../config/tag-reads.ts";
import { probeBudget, type UnitBreaker, unitBreaker } from "../connection/breaker.ts";
import type { ModbusConnection } from "../connection/modbus-connection.ts";
import type { Result } from "../connection/result.ts";
import { lineRest } from "../transport/serial-stream.ts";
import type { DeviceQuirks } from "./device-quirks.ts";
import { Poll } from "./poll.ts";
import { readingsQueue } from "./readings.ts";
import { slots } from "./schedule.ts";
import { checkUnits } from "./unit-check.ts";

const skippedTotal: MetricDeclaration<"source"> = {
  name: "source_modbus_skipped_polls_total",
  help: "Polls left out because the one before had not ended",
  labels: ["source"],
};

const droppedTotal: MetricDeclaration<"source"> = {
  name: "source_modbus_dropped_readings_total",
  help: "Readings dropped because the buffer did not take them in time",
  labels: ["source"],
};

const largestDelivery = 10_000;
/** Queue capacity in cycles of all tags, but at least one delivery. */
const waitingCycles = 4;
/** Patient probes per connection. Waiting for slow units must not delay others much. */
const patientProbes = 2;
const reportEveryMs = 10_000;
/** Polls wait no longer for a request of a search, unless the device is slow. A time-out may be a minute. */
const longestSearchMs = 2_000;
/** Shortest pause after a request of a search. */
const searchPauseMs = 10;
/** Stands for an address that the configuration does not permit to read. */
const illegalAddress = 2;

/** What a search may do with the connection of a source. */
export interface PolledDevice {
  readonly options: ModbusOptions;
  /** All units that are polled. */
  readonly units: readonly number[];
  /** Whether `search` rejects from now on. */
  readonly isLost: boolean;
  /**
   * Reads for a person who looks for tags. Searching leaves half of the time of the connection to polling, and what the
   * configuration forbids to read counts as refused. Rejects like `ModbusConnection.search`.
   */
  search(request: UnitRequest, timeoutMs: number, signal: AbortSignal): Promise<Result>;
}

const devices = new WeakMap<Source, PolledDevice>();

/** The device that `source` polls. Undefined: it is not a Modbus source. */
export function polledDevice(source: Source): PolledDevice | undefined {
  return devices.get(source);
}

/** Polls through `link`, which it owns. Starts with `deliveries`, which disposes `opening`. */
export function modbusSource(
  config: ModbusConfig,
  targets: readonly PollTarget[],
  link: ModbusConnection,
  quirks: DeviceQuirks,
  runtime: Runtime,
  mayRead: (request: ReadRequest) => boolean = () => true,
  opening?: Disposable,
) {
  const { clock, metrics, log } = runtime;
  const breakers = new Map<number, UnitBreaker>();
  const closing = new AbortController();
  let skipped = 0;
  /** Dropped readings that are not logged yet. */
  let unreported = 0;
  /** Bus disturbances that are logged. */
  let logged: ReadonlySet<string> = new Set();
  let reportAgainAt = Number.NEGATIVE_INFINITY;
  const queue = readingsQueue(Math.max(largestDelivery, config.tags.length * waitingCycles));
  const startedAt = clock.monotonic();
  const { url } = config.options;
  // TCP loses no requests, so a repetition would not help.
  const retries = config.options.retries ?? (url.transport === "tcp" ? 0 : 1);
  const restMs = url.transport === "serial" ? lineRest(url.line, config.options.timeout).guardMs : 0;
  const budget = probeBudget(clock);
  // If a time-out closes the connection, a late answer is never seen. Wait longer to detect a slow unit.
  let patientLeft = url.transport === "tcp" && url.frames !== "mbap" ? patientProbes : 0;
  const mayBePatient = () => patientLeft-- > 0;
  const polls: readonly Poll[] = targets.map((target) => {
    const breaker = breakers.get(target.unit) ?? unitBreaker(clock, runtime.random, budget);
    breakers.set(target.unit, breaker);
    const { time } = config.options;
    return new Poll({ target, time, retries, restMs, link, mayBePatient, breaker, quirks }, runtime);
  });

  /** Polls until a target fails; then delivers the queued readings and throws the failure. */
  async function runAll(signal: AbortSignal): Promise<void> {
    const stop = new AbortController();
    const end = () => stop.abort(signal.reason);
    // `AbortSignal.any` would take longer for each request that asks for its state.
    signal.addEventListener("abort", end, { once: true });
    if (signal.aborted) end();
    const run = (poll: Poll) => runPoll(poll, stop.signal).catch((error: unknown) => stop.abort(error));
    await Promise.all(polls.map(run));
    signal.removeEventListener("abort", end);
    // Without tags there is no failure.
    if (stop.signal.aborted) queue.fail(stop.signal.reason);
  }

  async function runPoll(poll: Poll, signal: AbortSignal): Promise<void> {
    const source = config.name;
    for await (const slot of slots(poll.target.everyMs, clock, signal)) {
      if (slot.skipped > 0) {
        skipped += slot.skipped;
        metrics.counter(skippedTotal).add(slot.skipped, { source });
      }
      const readings: ReadingBatch[] = [];
      try {
        await poll.cycle(slot.time, readings, signal);
      } finally {
        logDisturbances();
        const dropped = queue.offer(readings);
        if (dropped > 0) reportDropped(dropped);
      }
    }
  }

  /** Logs each kind once, and again after it has ended. */
  function logDisturbances(): void {
    const { disturbances } = link;
    for (const { kind, message } of disturbances)
      if (!logged.has(kind)) log.warn({ disturbance: message }, "the bus is disturbed");
    logged = new Set(disturbances.map(({ kind }) => kind));
  }

  function reportDropped(readings: number): void {
    metrics.counter(droppedTotal).add(readings, { source: config.name });
    unreported += readings;
    if (clock.monotonic() < reportAgainAt) return;
    log.error({ readings: unreported }, "readings dropped: the buffer did not take them in time");
    unreported = 0;
    reportAgainAt = clock.monotonic() + reportEveryMs;
  }

  const device: PolledDevice = {
    options: config.options,
    get units() {
      return [...breakers.keys()];
    },
    get isLost() {
      return link.isLost;
    },
    async search(request, timeoutMs, signal) {
      if ("table" in request && !mayRead(request))
        return { kind: "exception", code: illegalAddress, at: clock.now(), tookMs: 0 };
      const waitMs = Math.min(timeoutMs, Math.max(longestSearchMs, link.unlikelyAfter(timeoutMs)));
      const result = await link.search(request, waitMs, signal);
      await clock.sleep(Math.max(searchPauseMs, "tookMs" in result ? result.tookMs : waitMs), signal);
      return result;
    },
  };
  const source = {
    async *deliveries(signal: AbortSignal): AsyncGenerator<Delivery> {
      opening?.[Symbol.dispose]();
      const stop = AbortSignal.any([signal, closing.signal]);
      const running = runAll(stop);
      try {
        for (;;) yield delivery(await queue.take(largestDelivery, stop));
      } catch (error) {
        if (!isAbort(error, stop)) throw error;
        // Deliver what has been read before the abort.
        await running;
        while (queue.size > 0) yield delivery(await queue.take(largestDelivery, new AbortController().signal));
      } finally {
        closing.abort();
      }
    },
    polled: targets.flatMap(({ spans }) => spans.flatMap(({ values }) => values)),
    warnings: () => link.disturbances,
    details() {
      const elapsed = Math.max(1, clock.monotonic() - startedAt);
      const down = [...breakers].filter(([, breaker]) => breaker.down !== undefined).map(([unit]) => unit);
      return {
        url: url.text,
        units: breakers.size,
        "units down": down.length === 0 ? "none" : down.join(", "),
        "requests per cycle of all tags": polls.reduce((sum, poll) => sum + poll.requests, 0),
        "bus load": `${Math.round((100 * link.busyMs) / elapsed)} %`,
        "requests split": [...breakers.keys()].reduce((sum, unit) => sum + quirks.cuts(unit).length, 0),
        "polls skipped": skipped,
      };
    },
    check: (signal) => checkUnits(targets, link, { hint: silenceHint(url), url: url.text }, clock, signal),
    async [Symbol.asyncDispose]() {
      opening?.[Symbol.dispose]();
      closing.abort();
      await link[Symbol.asyncDispose]();
      await quirks.saved();
    },
  } satisfies Source;
  devices.set(source, device);
  return source;
}

function delivery(batches: readonly ReadingBatch[]): Delivery {
  return batchDelivery(batches, { descriptions: [], awaited: false, ack: () => {} });
}
