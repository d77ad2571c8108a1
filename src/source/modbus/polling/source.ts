// A live Modbus connection: polls every target on its schedule and delivers the readings.
import type { ReadingBatch } from "../../../core/reading.ts";
import type { Runtime } from "../../../core/runtime.ts";
import type { Delivery, Source, SourceCheck, SourceWarning } from "../../../core/source.ts";
import { isAbort } from "../../../lib/flow/abort.ts";
import { batchDelivery } from "../../../lib/readings/reading-batch.ts";
import { silenceHint } from "../config/endpoint.ts";
import type { ModbusOptions } from "../config/options.ts";
import type { ReadRequest, UnitRequest } from "../config/pdu.ts";
import type { ModbusConfig, PollTarget } from "../config/tag-reads.ts";
import { probeBudget, type UnitBreaker, unitBreaker } from "../connection/breaker.ts";
import type { Result } from "../connection/framing.ts";
import { droppedTotal, skippedTotal } from "../connection/metrics.ts";
import type { ModbusConnection } from "../connection/modbus-connection.ts";
import { lineRest } from "../connection/serial-stream.ts";
import type { DeviceQuirks } from "./device-quirks.ts";
import { Poll } from "./poll.ts";
import { ReadingsQueue } from "./readings.ts";
import { slots } from "./schedule.ts";
import { checkUnits } from "./unit-check.ts";

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

/** Polls through `link`, which it owns. Starts with `deliveries`, which disposes `opening`. */
export class ModbusSource implements Source {
  readonly #config: ModbusConfig;
  readonly #runtime: Runtime;
  readonly #link: ModbusConnection;
  readonly #quirks: DeviceQuirks;
  readonly #mayRead: (request: ReadRequest) => boolean;
  readonly #opening: Disposable | undefined;
  readonly #polls: readonly Poll[];
  readonly #breakers = new Map<number, UnitBreaker>();
  readonly #queue: ReadingsQueue;
  readonly #closing = new AbortController();
  readonly #startedAt: number;
  #skipped = 0;
  /** Dropped readings that are not logged yet. */
  #unreported = 0;
  /** Bus disturbances that are logged. */
  #logged: ReadonlySet<string> = new Set();
  #reportAgainAt = Number.NEGATIVE_INFINITY;

  constructor(
    config: ModbusConfig,
    targets: readonly PollTarget[],
    link: ModbusConnection,
    quirks: DeviceQuirks,
    runtime: Runtime,
    mayRead: (request: ReadRequest) => boolean = () => true,
    opening?: Disposable,
  ) {
    this.#opening = opening;
    this.#mayRead = mayRead;
    this.#config = config;
    this.#runtime = runtime;
    this.#link = link;
    this.#quirks = quirks;
    this.#queue = new ReadingsQueue(Math.max(largestDelivery, config.tags.length * waitingCycles));
    this.#startedAt = runtime.clock.monotonic();
    const { url } = config.options;
    // TCP loses no requests, so a repetition would not help.
    const retries = config.options.retries ?? (url.transport === "tcp" ? 0 : 1);
    const restMs = url.transport === "serial" ? lineRest(url.line, config.options.timeout).guardMs : 0;
    const budget = probeBudget(runtime.clock);
    // If a time-out closes the connection, a late answer is never seen. Wait longer to detect a slow unit.
    let patientLeft = url.transport === "tcp" && url.frames !== "mbap" ? patientProbes : 0;
    const mayBePatient = () => patientLeft-- > 0;
    this.#polls = targets.map((target) => {
      const breaker = this.#breakers.get(target.unit) ?? unitBreaker(runtime.clock, runtime.random, budget);
      this.#breakers.set(target.unit, breaker);
      const { time } = config.options;
      return new Poll({ target, time, retries, restMs, link, mayBePatient, breaker, quirks }, runtime);
    });
  }

  async *deliveries(signal: AbortSignal): AsyncGenerator<Delivery> {
    this.#opening?.[Symbol.dispose]();
    const stop = AbortSignal.any([signal, this.#closing.signal]);
    const running = this.#runAll(stop);
    try {
      for (;;) yield delivery(await this.#queue.take(largestDelivery, stop));
    } catch (error) {
      if (!isAbort(error, stop)) throw error;
      // Deliver what has been read before the abort.
      await running;
      while (this.#queue.size > 0)
        yield delivery(await this.#queue.take(largestDelivery, new AbortController().signal));
    } finally {
      this.#closing.abort();
    }
  }

  get options(): ModbusOptions {
    return this.#config.options;
  }

  /** All units that are polled. */
  get units(): readonly number[] {
    return [...this.#breakers.keys()];
  }

  /** Whether `search` rejects from now on. */
  get isLost(): boolean {
    return this.#link.isLost;
  }

  /**
   * Reads for a person who looks for tags. Searching leaves half of the time of the connection to polling, and what the
   * configuration forbids to read counts as refused. Rejects like `ModbusConnection.search`.
   */
  async search(request: UnitRequest, timeoutMs: number, signal: AbortSignal): Promise<Result> {
    const { clock } = this.#runtime;
    if ("table" in request && !this.#mayRead(request))
      return { kind: "exception", code: illegalAddress, at: clock.now(), tookMs: 0 };
    const waitMs = Math.min(timeoutMs, Math.max(longestSearchMs, this.#link.unlikelyAfter(timeoutMs)));
    const result = await this.#link.search(request, waitMs, signal);
    await clock.sleep(Math.max(searchPauseMs, "tookMs" in result ? result.tookMs : waitMs), signal);
    return result;
  }

  warnings(): readonly SourceWarning[] {
    return this.#link.disturbances;
  }

  details(): Readonly<Record<string, string | number>> {
    const elapsed = Math.max(1, this.#runtime.clock.monotonic() - this.#startedAt);
    const down = [...this.#breakers].filter(([, breaker]) => breaker.down !== undefined).map(([unit]) => unit);
    return {
      url: this.#config.options.url.text,
      units: this.#breakers.size,
      "units down": down.length === 0 ? "none" : down.join(", "),
      "requests per cycle of all tags": this.#polls.reduce((sum, poll) => sum + poll.requests, 0),
      "bus load": `${Math.round((100 * this.#link.busyMs) / elapsed)} %`,
      "requests split": [...this.#breakers.keys()].reduce((sum, unit) => sum + this.#quirks.cuts(unit).length, 0),
      "polls skipped": this.#skipped,
    };
  }

  async check(signal: AbortSignal): Promise<SourceCheck> {
    const targets = this.#polls.map(({ target }) => target);
    const { url } = this.#config.options;
    const texts = { hint: silenceHint(url), url: url.text };
    return await checkUnits(targets, this.#link, texts, this.#runtime.clock, signal);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#opening?.[Symbol.dispose]();
    this.#closing.abort();
    await this.#link[Symbol.asyncDispose]();
    await this.#quirks.saved();
  }

  /** Polls until a target fails; then delivers the queued readings and throws the failure. */
  async #runAll(signal: AbortSignal): Promise<void> {
    const stop = new AbortController();
    const end = () => stop.abort(signal.reason);
    // `AbortSignal.any` would take longer for each request that asks for its state.
    signal.addEventListener("abort", end, { once: true });
    if (signal.aborted) end();
    const run = (poll: Poll) => this.#run(poll, stop.signal).catch((error: unknown) => stop.abort(error));
    await Promise.all(this.#polls.map(run));
    signal.removeEventListener("abort", end);
    // Without tags there is no failure.
    if (stop.signal.aborted) this.#queue.fail(stop.signal.reason);
  }

  async #run(poll: Poll, signal: AbortSignal): Promise<void> {
    const { clock, metrics } = this.#runtime;
    const source = this.#config.name;
    for await (const slot of slots(poll.target.everyMs, clock, signal)) {
      if (slot.skipped > 0) {
        this.#skipped += slot.skipped;
        metrics.counter(skippedTotal).add(slot.skipped, { source });
      }
      const readings: ReadingBatch[] = [];
      try {
        await poll.cycle(slot.time, readings, signal);
      } finally {
        this.#logDisturbances();
        const dropped = this.#queue.offer(readings);
        if (dropped > 0) this.#reportDropped(dropped);
      }
    }
  }

  /** Logs each kind once, and again after it has ended. */
  #logDisturbances(): void {
    const { disturbances } = this.#link;
    for (const { kind, message } of disturbances)
      if (!this.#logged.has(kind)) this.#runtime.log.warn({ disturbance: message }, "the bus is disturbed");
    this.#logged = new Set(disturbances.map(({ kind }) => kind));
  }

  #reportDropped(readings: number): void {
    const { clock, metrics, log } = this.#runtime;
    metrics.counter(droppedTotal).add(readings, { source: this.#config.name });
    this.#unreported += readings;
    if (clock.monotonic() < this.#reportAgainAt) return;
    log.error({ readings: this.#unreported }, "readings dropped: the buffer did not take them in time");
    this.#unreported = 0;
    this.#reportAgainAt = clock.monotonic() + reportEveryMs;
  }
}

function delivery(batches: readonly ReadingBatch[]): Delivery {
  return batchDelivery(batches, { descriptions: [], awaited: false, ack: () => {} });
}
