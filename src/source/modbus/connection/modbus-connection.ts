// One connection shared by all polls: one request in flight, reopened on demand, abandoned when the device is silent.
import { AgentError, isAgentError } from "../../../core/errors.ts";
import type { Runtime } from "../../../core/runtime.ts";
import type { UnitRequest } from "../config/pdu.ts";
import { FairMutex } from "./breaker.ts";
import type { Disturbance } from "./bus-watch.ts";
import { slowestTimeouts, unsteadiness } from "./exchange.ts";
import type { Exchange, Result } from "./framing.ts";
import { discardedTotal, exceptionsTotal, reconnectsTotal, requestsTotal, roundTrip } from "./metrics.ts";

export interface ModbusConnectionOptions {
  readonly name: string;
  /** All units that are ever polled. */
  readonly units: ReadonlySet<number>;
  /** Pause between a reply and the next request. */
  readonly delayMs: number;
  /** Additional time of a request on a slow line, beyond the time-out of its unit. */
  readonly extraMs?: (request: UnitRequest) => number;
  readonly closeAfterPoll?: boolean;
  readonly isCloseable?: boolean;
  readonly disturbances?: () => readonly Disturbance[];
  /** Pause between connecting and the first request. */
  readonly pauseAfterConnectMs: number;
  /** Hint if no byte comes back. Default: the hint for any unreachable device. */
  readonly silenceHint?: string;
  /** Resolves with a connection; rejects with `SOURCE_*` or `signal.reason`. */
  readonly connect: (signal: AbortSignal) => Promise<Exchange>;
}

/** Fewest consecutive requests without a byte in return before the connection may count as dead. */
const silentLimit = 3;
const shortestProbeMs = 50;
/** Longer than the pauses within one poll. */
const lingerMs = 100;
/** All searches together take turns as one unit does. No unit has this number. */
const searchTurn = -1;
/** The source of searches in metrics, so that those of the source count polls alone. */
const searchName = "browse";

export class ModbusConnection implements AsyncDisposable {
  readonly #options: ModbusConnectionOptions;
  readonly #runtime: Runtime;
  readonly #mutex = new FairMutex();
  #exchange: Exchange;
  readonly #answered = new Set<number>();
  #silent = 0;
  /** Total time with a request in flight. */
  busyMs = 0;
  #endedAt = Number.NEGATIVE_INFINITY;
  /** Discarded replies of this exchange that the metric includes. */
  #counted = 0;
  /** Units that did not answer a conclusive request since the last byte came. */
  readonly #silentUnits = new Set<number>();
  #notBefore: number;
  /** Recent slowest answer in milliseconds; it decays with each answer. */
  #slowestMs = 0;
  #failure: AgentError | undefined;
  /** Aborted when the connection is disposed. */
  readonly #closing = new AbortController();
  /** Aborted when the connection is used again or disposed. */
  #lingering = new AbortController();
  #released = false;
  /** The error of the last connection that the device closed during a request. */
  #closedOver: AgentError | undefined;
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

  /** Whether one more silence may end the connection. Then request the value most likely answered. */
  get isNearlyLost(): boolean {
    return this.#silent >= silentLimit - 1;
  }

  /** Milliseconds after which an answer is unlikely: 4 × the recent slowest, from 50 to `timeoutMs` (the default). */
  unlikelyAfter(timeoutMs: number): number {
    if (this.#answered.size === 0) return timeoutMs;
    return Math.min(timeoutMs, Math.max(shortestProbeMs, this.#slowestMs * 4));
  }

  /** Whether every further request is rejected. */
  get isLost(): boolean {
    return this.#failure !== undefined;
  }

  get disturbances(): readonly Disturbance[] {
    return this.#options.disturbances?.() ?? [];
  }

  /**
   * Resolves with the result of `request`, after waiting for its turn. Rejects with `SOURCE_*` if the link is lost,
   * from then on always, or with `signal.reason`. `conclusive`: silence means that the unit is absent. If false, the
   * address may be the reason, which never ends the connection.
   */
  async read(request: UnitRequest, timeoutMs: number, signal: AbortSignal, conclusive = true): Promise<Result> {
    using _turn = await this.#mutex.take(request.unit, signal);
    return await this.#read(request, timeoutMs, signal, conclusive);
  }

  /**
   * Like `read`, for a unit or address that may not exist. The result has no effect on the state of the connection or
   * of its units. `signal` ends only the wait for the turn: a late answer could be mistaken for that of a poll.
   */
  async search(request: UnitRequest, timeoutMs: number, signal: AbortSignal): Promise<Result> {
    using _turn = await this.#mutex.take(searchTurn, signal);
    return await this.#read(request, timeoutMs, this.#closing.signal, undefined);
  }

  /** Call on the caller's turn. `conclusive`: see `read`; undefined: see `search`. */
  async #read(
    request: UnitRequest,
    timeoutMs: number,
    signal: AbortSignal,
    conclusive: boolean | undefined,
  ): Promise<Result> {
    if (this.#failure) throw this.#failure;
    // Each abort would create an error with its stack.
    if (!this.#lingering.signal.aborted) this.#lingering.abort();
    try {
      const telling = this.#exchange.telling(request);
      const result = telling
        ? await this.#exchangeTold(telling, request, timeoutMs, signal, conclusive)
        : await this.#exchangeOne(request, timeoutMs, signal, conclusive);
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
    this.#closing.abort(this.#failure);
    this.#countDiscarded();
    await this.#exchange[Symbol.asyncDispose]();
  }

  /** First resolves doubts about late answers by `telling`. Extends the time-out for a slow unit. */
  async #exchangeTold(
    telling: UnitRequest,
    request: UnitRequest,
    timeoutMs: number,
    signal: AbortSignal,
    conclusive: boolean | undefined,
  ): Promise<Result> {
    const start = this.#runtime.clock.monotonic();
    const first = await this.#exchangeOne(telling, timeoutMs, signal, conclusive);
    if (first.kind === "silence" || first.kind === "contested") return first;
    const tookMs = this.#runtime.clock.monotonic() - start;
    const patienceMs = Math.min(tookMs * unsteadiness, timeoutMs * slowestTimeouts);
    return await this.#exchangeOne(request, Math.max(timeoutMs, patienceMs), signal, conclusive);
  }

  async #exchangeOne(
    request: UnitRequest,
    timeoutMs: number,
    signal: AbortSignal,
    conclusive: boolean | undefined,
  ): Promise<Result> {
    const { clock, metrics } = this.#runtime;
    const source = conclusive === undefined ? searchName : this.#options.name;
    const waitMs = timeoutMs + (this.#options.extraMs?.(request) ?? 0);
    let start: number;
    let result: Result;
    // Repeats a request that a gateway never received because it closes the connection after each reply.
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
    this.busyMs += end - start;
    // Bytes since the last request count, too: a unit may be slower than its time-out.
    const received = this.#exchange.receivedAt > this.#endedAt;
    this.#endedAt = end;

    const unit = String(request.unit);
    this.#countDiscarded();
    metrics.counter(requestsTotal).add(1, { source, unit, outcome: outcomes[result.kind] });
    if ("tookMs" in result || received || (result.kind === "silence" && result.received)) {
      this.#silent = 0;
      this.#silentUnits.clear();
    } else if (result.kind === "silence" && conclusive !== undefined)
      this.#hearNothing(request.unit, conclusive, result.closed !== undefined);
    if ("tookMs" in result) {
      this.#isUsed = true;
      if (result.kind === "exception")
        metrics.counter(exceptionsTotal).add(1, { source, unit, code: String(result.code) });
      metrics.histogram(roundTrip).observe(result.tookMs / 1_000, { source });
      if (conclusive === undefined) return result;
      this.#slowestMs = Math.max(result.tookMs, this.#slowestMs * 0.999);
      this.#answered.add(request.unit);
    }
    return result;
  }

  /** Includes replies that came without a request in flight. */
  #countDiscarded(): void {
    const { discarded } = this.#exchange;
    if (discarded > this.#counted)
      this.#runtime.metrics.counter(discardedTotal).add(discarded - this.#counted, { source: this.#options.name });
    this.#counted = discarded;
  }

  /** Treats a close during a request as silence. Rethrows for a conclusive request if no unit has ever answered. */
  #closed(error: unknown, conclusive: boolean | undefined): Result {
    if (this.#failure || !this.#options.isCloseable || (conclusive && this.#answered.size === 0)) throw error;
    if (error !== this.#exchange.lost || !isAgentError(error, "SOURCE_UNREACHABLE")) throw error;
    this.#closedOver = error;
    return { kind: "silence", mismatch: undefined, received: false, closed: error.message };
  }

  /** Throws if all units that ever answered, or all units if none did, are silent: the connection is dead. */
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

  /** Closes the connection for other clients, unless it is soon used again. Never rejects. */
  async #releaseSoon(): Promise<void> {
    this.#lingering = new AbortController();
    const { signal } = this.#lingering;
    await this.#runtime.clock.sleep(lingerMs, signal).catch(() => {});
    // The connection may be used again at the very moment of the time-out.
    if (signal.aborted) return;
    this.#released = true;
    await this.#exchange[Symbol.asyncDispose]();
  }

  /** Reopens a connection that the device closed while idle or during a request. That is not a loss. */
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
