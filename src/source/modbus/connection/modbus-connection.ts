// One connection and everyone who reads through it: one request in flight, pauses kept, reopened on demand when the
// device closed it while idle, given up when it is silent.
import { AgentError, isAgentError } from "../../../core/errors.ts";
import type { Runtime } from "../../../core/runtime.ts";
import type { UnitRequest } from "../config/pdu.ts";
import { Turns } from "./breaker.ts";
import type { Disturbance } from "./bus-watch.ts";
import { slowestTimeouts, unsteadiness } from "./exchange.ts";
import type { Exchange, Result } from "./framing.ts";
import { discardedTotal, exceptionsTotal, reconnectsTotal, requestsTotal, roundTrip } from "./metrics.ts";

export interface ModbusConnectionOptions {
  /** Name of the source, for metrics. */
  readonly name: string;
  /** All units that are ever asked. */
  readonly units: ReadonlySet<number>;
  /** Between a reply and the next request. */
  readonly delayMs: number;
  /** What a request may take beyond the time-out of its unit: its time on a slow line. */
  readonly extraMs?: (request: UnitRequest) => number;
  /** Whether an idle connection is closed. */
  readonly closeAfterPoll?: boolean;
  /** Whether the device can close the connection. */
  readonly isCloseable?: boolean;
  /** What disturbs the bus. */
  readonly disturbances?: () => readonly Disturbance[];
  /** Between connecting and the first request. */
  readonly pauseAfterConnectMs: number;
  /** What to do where not a byte comes back; left out: what is said of every device that cannot be reached. */
  readonly silenceHint?: string;
  /** Resolves with a connection; rejects with `SOURCE_*` or `signal.reason`. */
  readonly connect: (signal: AbortSignal) => Promise<Exchange>;
}

/** Fewest requests in a row without a byte in return after which a connection may count as dead. */
const silentLimit = 3;
const shortestProbeMs = 50;
/** Between the requests of one poll less time passes. */
const lingerMs = 100;

export class ModbusConnection implements AsyncDisposable {
  readonly #options: ModbusConnectionOptions;
  readonly #runtime: Runtime;
  readonly #turns = new Turns();
  #exchange: Exchange;
  /** Units that have ever answered. */
  readonly #answered = new Set<number>();
  #silent = 0;
  /** When the last request was over. */
  #endedAt = Number.NEGATIVE_INFINITY;
  /** Replies thrown away on this connection that have been counted. */
  #counted = 0;
  /** Units that were silent to a conclusive request since the last byte came. */
  readonly #silentUnits = new Set<number>();
  #notBefore: number;
  #busyMs = 0;
  /** Slowest answer of late in milliseconds: what is older counts less and less. */
  #slowestMs = 0;
  #failure: AgentError | undefined;
  /** Ends when the connection is used again, and with the link. */
  #lingering = new AbortController();
  #released = false;
  /** Why the device closed the connection while a request was under way, the last time it did. */
  #closedOver: AgentError | undefined;
  /** Whether a request was answered on this connection. */
  #isUsed = false;

  private constructor(options: ModbusConnectionOptions, runtime: Runtime, exchange: Exchange) {
    this.#options = options;
    this.#runtime = runtime;
    this.#exchange = exchange;
    this.#notBefore = runtime.clock.monotonic() + options.pauseAfterConnectMs;
  }

  /** Connects. Rejects with `SOURCE_*` or `signal.reason`. */
  static async open(
    options: ModbusConnectionOptions,
    runtime: Runtime,
    signal: AbortSignal,
  ): Promise<ModbusConnection> {
    return new ModbusConnection(options, runtime, await options.connect(signal));
  }

  /** Whether one more request without a byte in return may end the connection: then ask for what is answered if anything is. */
  get isNearlyLost(): boolean {
    return this.#silent >= silentLimit - 1;
  }

  /**
   * Milliseconds after which an answer that has not come is unlikely to, going by the slowest of late; from 50, at most
   * `timeoutMs`, which it is while nothing was answered. For asking a unit that most likely does not answer.
   */
  unlikelyAfter(timeoutMs: number): number {
    if (this.#answered.size === 0) return timeoutMs;
    return Math.min(timeoutMs, Math.max(shortestProbeMs, this.#slowestMs * 4));
  }

  /** What disturbs the bus; see `BusWatch`. */
  get disturbances(): readonly Disturbance[] {
    return this.#options.disturbances?.() ?? [];
  }

  /** Milliseconds in which a request was under way, so far. */
  get busyMs(): number {
    return this.#busyMs;
  }

  /**
   * Resolves with what became of `request`, when `Exchange.run` does after its turn. Rejects with `SOURCE_*` when the
   * link is lost, which it then stays, or with `signal.reason`. `conclusive`: silence says that the unit is not there;
   * false: it may be silent because of what it is asked for, which never ends the connection.
   */
  async read(request: UnitRequest, timeoutMs: number, signal: AbortSignal, conclusive = true): Promise<Result> {
    using _turn = await this.#turns.take(request.unit, signal);
    if (this.#failure) throw this.#failure;
    this.#lingering.abort();
    try {
      const result = await this.#exchangeTold(request, timeoutMs, signal, conclusive);
      if (this.#options.closeAfterPoll && !this.#failure) void this.#releaseSoon();
      return result;
    } catch (error) {
      if (error instanceof AgentError) this.#failure ??= error;
      throw error;
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#lingering.abort();
    this.#failure ??= new AgentError("SOURCE_UNREACHABLE", "the connection was closed");
    this.#countDiscarded();
    await this.#exchange[Symbol.asyncDispose]();
  }

  /** Asks for something else before, where the answer could not be told from a late one. A unit that is slow is given time. */
  async #exchangeTold(
    request: UnitRequest,
    timeoutMs: number,
    signal: AbortSignal,
    conclusive: boolean,
  ): Promise<Result> {
    const telling = this.#exchange.telling(request);
    if (!telling) return await this.#exchangeOne(request, timeoutMs, signal, conclusive);
    const start = this.#runtime.clock.monotonic();
    const told = await this.#exchangeOne(telling, timeoutMs, signal, conclusive);
    if (told.kind === "silence" || told.kind === "contested") return told;
    const tookMs = this.#runtime.clock.monotonic() - start;
    const patienceMs = Math.min(tookMs * unsteadiness, timeoutMs * slowestTimeouts);
    return await this.#exchangeOne(request, Math.max(timeoutMs, patienceMs), signal, conclusive);
  }

  async #exchangeOne(
    request: UnitRequest,
    timeoutMs: number,
    signal: AbortSignal,
    conclusive: boolean,
  ): Promise<Result> {
    const { clock, metrics } = this.#runtime;
    const source = this.#options.name;
    const waitMs = timeoutMs + (this.#options.extraMs?.(request) ?? 0);
    let start: number;
    let result: Result;
    // A gateway that closes the connection after each reply never gets the request: it goes out again on a new connection.
    do {
      if (this.#exchange.lost) await this.#reopen(this.#exchange.lost, signal);
      const pause = this.#notBefore - clock.monotonic();
      if (pause > 0) await clock.sleep(pause, signal);
      start = clock.monotonic();
      result = await this.#exchange
        .run(request, waitMs, signal)
        .catch((error: unknown) => this.#closed(error, conclusive));
    } while (this.#isUsed && this.#exchange.lost && this.#exchange.lost === this.#closedOver);
    const end = clock.monotonic();
    this.#notBefore = end + this.#options.delayMs;
    this.#busyMs += end - start;
    // Bytes that came since the last request are a sign of life, too: a unit may be slower than its time-out.
    const heard = this.#exchange.heardAt > this.#endedAt;
    this.#endedAt = end;

    const unit = String(request.unit);
    this.#countDiscarded();
    metrics.counter(requestsTotal).add(1, { source, unit, outcome: outcomes[result.kind] });
    if ("tookMs" in result || heard || (result.kind === "silence" && result.heard)) {
      this.#silent = 0;
      this.#silentUnits.clear();
    } else if (result.kind === "silence") this.#hearNothing(request.unit, conclusive, result.closed !== undefined);
    if ("tookMs" in result) {
      this.#isUsed = true;
      if (result.kind === "exception")
        metrics.counter(exceptionsTotal).add(1, { source, unit, code: String(result.code) });
      metrics.histogram(roundTrip).observe(result.tookMs / 1_000, { source });
      this.#slowestMs = Math.max(result.tookMs, this.#slowestMs * 0.999);
      this.#answered.add(request.unit);
    }
    return result;
  }

  /** Also those that came while nothing was asked. */
  #countDiscarded(): void {
    const { discarded } = this.#exchange;
    if (discarded > this.#counted)
      this.#runtime.metrics.counter(discardedTotal).add(discarded - this.#counted, { source: this.#options.name });
    this.#counted = discarded;
  }

  /**
   * A device may close the connection over what it is asked for: it did not answer, and the next request opens another one.
   * One that never answered, and closes it over a single value, has none for us.
   */
  #closed(error: unknown, conclusive: boolean): Result {
    if (this.#failure || !this.#options.isCloseable || (conclusive && this.#answered.size === 0)) throw error;
    if (error !== this.#exchange.lost || !isAgentError(error, "SOURCE_UNREACHABLE")) throw error;
    this.#closedOver = error;
    return { kind: "silence", mismatch: undefined, heard: false, closed: error.message };
  }

  /**
   * A unit behind a gateway may be dead alone. The connection is dead when none answers of those that answered before, or
   * of all if none has.
   */
  #hearNothing(unit: number, conclusive: boolean, closed: boolean): void {
    this.#silent++;
    if (conclusive) this.#silentUnits.add(unit);
    const expected = this.#answered.size > 0 ? this.#answered : this.#options.units;
    if (this.#silent < silentLimit || ![...expected].every((other) => this.#silentUnits.has(other))) return;
    const message = `not a byte came back for ${this.#silent} requests in a row`;
    const { silenceHint: hint } = this.#options;
    throw (
      (closed ? this.#closedOver : undefined) ??
      new AgentError("SOURCE_UNREACHABLE", message, { ...(hint !== undefined && { hint }) })
    );
  }

  /** Gives the connection to others who want one of the device, unless it is used again at once. Never rejects. */
  async #releaseSoon(): Promise<void> {
    this.#lingering = new AbortController();
    const { signal } = this.#lingering;
    await this.#runtime.clock.sleep(lingerMs, signal).catch(() => {});
    // Also where it was used again in the very moment in which the time was over.
    if (signal.aborted) return;
    this.#released = true;
    await this.#exchange[Symbol.asyncDispose]();
  }

  /** Some devices and gateways close a connection that was idle, or over a request: that is no loss as long as the next one opens. */
  async #reopen(cause: AgentError, signal: AbortSignal): Promise<void> {
    const idleClose = this.#answered.size > 0 && cause.code === "SOURCE_UNREACHABLE";
    const ownDoing = this.#released || this.#exchange.stale;
    if (!idleClose && !ownDoing && cause !== this.#closedOver) throw cause;
    this.#countDiscarded();
    await this.#exchange[Symbol.asyncDispose]();
    this.#exchange = await this.#options.connect(signal);
    this.#isUsed = false;
    this.#counted = this.#exchange.discarded;
    this.#notBefore = this.#runtime.clock.monotonic() + this.#options.pauseAfterConnectMs;
    if (!this.#released) this.#runtime.metrics.counter(reconnectsTotal).add(1, { source: this.#options.name });
    this.#released = false;
  }
}

const outcomes = {
  data: "ok",
  exception: "exception",
  silence: "timeout",
  contested: "contested",
} as const satisfies Record<Result["kind"], string>;
