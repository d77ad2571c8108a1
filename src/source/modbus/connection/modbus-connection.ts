// One connection shared by all polls: one request in flight, reopened on demand, abandoned when the device is silent.
import { AgentError, isAgentError } from "../../../core/errors.ts";
import type { HistogramDeclaration, MetricDeclaration, Runtime } from "../../../core/runtime.ts";
import type { UnitRequest } from "../config/pdu.ts";
import type { Disturbance } from "../framing/bus-watch.ts";
import { fairMutex } from "./breaker.ts";
import { slowestTimeouts, unsteadiness } from "./exchange.ts";
import type { Exchange, Result } from "./result.ts";

/** `outcome`: ok, exception, timeout (also if the device closed the connection), contested (see `Result`). */
const requestsTotal: MetricDeclaration<"source" | "unit" | "outcome"> = {
  name: "source_modbus_requests_total",
  help: "Modbus requests by outcome",
  labels: ["source", "unit", "outcome"],
};

const exceptionsTotal: MetricDeclaration<"source" | "unit" | "code"> = {
  name: "source_modbus_exceptions_total",
  help: "Modbus exceptions by code",
  labels: ["source", "unit", "code"],
};

const discardedTotal: MetricDeclaration<"source"> = {
  name: "source_modbus_discarded_replies_total",
  help: "Modbus replies thrown away: late, or not what was asked for",
  labels: ["source"],
};

const reconnectsTotal: MetricDeclaration<"source"> = {
  name: "source_modbus_reconnects_total",
  help: "Connections opened again on demand after the device had closed one",
  labels: ["source"],
};

const roundTrip: HistogramDeclaration<"source"> = {
  name: "source_modbus_round_trip_seconds",
  help: "Time from a Modbus request to its answer",
  labels: ["source"],
  buckets: [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5],
};

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

interface Ask {
  readonly request: UnitRequest;
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
  /** See `ModbusConnection.read`. Undefined: see `ModbusConnection.search`. */
  readonly conclusive: boolean | undefined;
}

export type ModbusConnection = Awaited<ReturnType<typeof openModbusConnection>>;

/** Connects. Rejects with `SOURCE_*` or `signal.reason`. */
export async function openModbusConnection(
  options: ModbusConnectionOptions,
  runtime: Runtime,
  connecting: AbortSignal,
) {
  const { clock, metrics } = runtime;
  let exchange = await options.connect(connecting);
  const mutex = fairMutex();
  const answered = new Set<number>();
  let silent = 0;
  let busyMs = 0;
  let endedAt = Number.NEGATIVE_INFINITY;
  /** Discarded replies of this exchange that the metric includes. */
  let counted = 0;
  /** Units that did not answer a conclusive request since the last byte came. */
  const silentUnits = new Set<number>();
  /** Recent slowest answer in milliseconds; it decays with each answer. */
  let slowestMs = 0;
  let failure: AgentError | undefined;
  /** Aborted when the connection is disposed. */
  const closing = new AbortController();
  /** Aborted when the connection is used again or disposed. */
  let lingering = new AbortController();
  let released = false;
  /** The error of the last connection that the device closed during a request. */
  let closedOver: AgentError | undefined;
  let isUsed = false;
  let notBefore = clock.monotonic() + options.pauseAfterConnectMs;

  /** Call on the caller's turn. */
  async function readInTurn(ask: Ask): Promise<Result> {
    if (failure) throw failure;
    // Each abort would create an error with its stack.
    if (!lingering.signal.aborted) lingering.abort();
    try {
      const resync = exchange.resync(ask.request);
      const result = await (resync ? exchangeAfterResync(resync, ask) : exchangeOne(ask));
      if (options.closeAfterPoll && !failure) void releaseSoon();
      return result;
    } catch (error) {
      if (error instanceof AgentError) failure ??= error;
      throw error;
    }
  }

  /** First sends `resync`, whose answer cannot be a late one. Extends the time-out for a slow unit. */
  async function exchangeAfterResync(resync: UnitRequest, ask: Ask): Promise<Result> {
    const start = clock.monotonic();
    const first = await exchangeOne({ ...ask, request: resync });
    if (first.kind === "silence" || first.kind === "contested") return first;
    const tookMs = clock.monotonic() - start;
    const patienceMs = Math.min(tookMs * unsteadiness, ask.timeoutMs * slowestTimeouts);
    return await exchangeOne({ ...ask, timeoutMs: Math.max(ask.timeoutMs, patienceMs) });
  }

  async function exchangeOne({ request, timeoutMs, signal, conclusive }: Ask): Promise<Result> {
    const source = conclusive === undefined ? searchName : options.name;
    const waitMs = timeoutMs + (options.extraMs?.(request) ?? 0);
    let start: number;
    let result: Result;
    // Repeats a request that a gateway never received because it closes the connection after each reply.
    do {
      if (exchange.lost) await reopen(exchange.lost, signal);
      const pause = notBefore - clock.monotonic();
      if (pause > 0) await clock.sleep(pause, signal);
      start = clock.monotonic();
      result = await exchange.run(request, waitMs, signal).catch((error: unknown) => silenceOf(error, conclusive));
    } while (isUsed && exchange.lost && exchange.lost === closedOver);
    const end = clock.monotonic();
    notBefore = end + options.delayMs;
    busyMs += end - start;
    // Bytes since the last request count, too: a unit may be slower than its time-out.
    const received = exchange.receivedAt > endedAt;
    endedAt = end;

    const unit = String(request.unit);
    countDiscarded();
    metrics.counter(requestsTotal).add(1, { source, unit, outcome: outcomes[result.kind] });
    if ("tookMs" in result || received || (result.kind === "silence" && result.received)) {
      silent = 0;
      silentUnits.clear();
    } else if (result.kind === "silence" && conclusive !== undefined)
      countSilence(request.unit, conclusive, result.closed !== undefined);
    if ("tookMs" in result) {
      isUsed = true;
      if (result.kind === "exception")
        metrics.counter(exceptionsTotal).add(1, { source, unit, code: String(result.code) });
      metrics.histogram(roundTrip).observe(result.tookMs / 1_000, { source });
      if (conclusive === undefined) return result;
      slowestMs = Math.max(result.tookMs, slowestMs * 0.999);
      answered.add(request.unit);
    }
    return result;
  }

  /** Includes replies that came without a request in flight. */
  function countDiscarded(): void {
    const { discarded } = exchange;
    if (discarded > counted) metrics.counter(discardedTotal).add(discarded - counted, { source: options.name });
    counted = discarded;
  }

  /** Treats a close during a request as silence. Rethrows for a conclusive request if no unit has ever answered. */
  function silenceOf(error: unknown, conclusive: boolean | undefined): Result {
    if (failure || !options.isCloseable || (conclusive && answered.size === 0)) throw error;
    if (error !== exchange.lost || !isAgentError(error, "SOURCE_UNREACHABLE")) throw error;
    closedOver = error;
    return { kind: "silence", mismatch: undefined, received: false, closed: error.message };
  }

  /** Throws if all units that ever answered, or all units if none did, are silent: the connection is dead. */
  function countSilence(unit: number, conclusive: boolean, closed: boolean): void {
    silent++;
    if (conclusive) silentUnits.add(unit);
    const expected = answered.size > 0 ? answered : options.units;
    if (silent < silentLimit || ![...expected].every((other) => silentUnits.has(other))) return;
    const message = `not a byte came back for ${silent} requests in a row`;
    const { silenceHint: hint } = options;
    throw (
      (closed ? closedOver : undefined) ??
      new AgentError("SOURCE_UNREACHABLE", message, { ...(hint !== undefined && { hint }) })
    );
  }

  /** Closes the connection for other clients, unless it is soon used again. Never rejects. */
  async function releaseSoon(): Promise<void> {
    lingering = new AbortController();
    const { signal } = lingering;
    await clock.sleep(lingerMs, signal).catch(() => {});
    // The connection may be used again at the very moment of the time-out.
    if (signal.aborted) return;
    released = true;
    await exchange[Symbol.asyncDispose]();
  }

  /** Reopens a connection that the device closed while idle or during a request. That is not a loss. */
  async function reopen(cause: AgentError, signal: AbortSignal): Promise<void> {
    const idleClose = answered.size > 0 && cause.code === "SOURCE_UNREACHABLE";
    const ownDoing = released || exchange.stale;
    if (!idleClose && !ownDoing && cause !== closedOver) throw cause;
    countDiscarded();
    await exchange[Symbol.asyncDispose]();
    exchange = await options.connect(signal);
    isUsed = false;
    counted = exchange.discarded;
    notBefore = clock.monotonic() + options.pauseAfterConnectMs;
    if (!released) metrics.counter(reconnectsTotal).add(1, { source: options.name });
    released = false;
  }

  return {
    /** Total time with a request in flight. */
    get busyMs(): number {
      return busyMs;
    },
    /** Whether one more silence may end the connection. Then request the value most likely answered. */
    get isNearlyLost(): boolean {
      return silent >= silentLimit - 1;
    },
    /** Milliseconds after which an answer is unlikely: 4 × the recent slowest, from 50 to `timeoutMs` (the default). */
    unlikelyAfter(timeoutMs: number): number {
      if (answered.size === 0) return timeoutMs;
      return Math.min(timeoutMs, Math.max(shortestProbeMs, slowestMs * 4));
    },
    /** Whether every further request is rejected. */
    get isLost(): boolean {
      return failure !== undefined;
    },
    get disturbances(): readonly Disturbance[] {
      return options.disturbances?.() ?? [];
    },
    /**
     * Resolves with the result of `request`, after waiting for its turn. Rejects with `SOURCE_*` if the link is lost,
     * from then on always, or with `signal.reason`. `conclusive`: silence means that the unit is absent. If false, the
     * address may be the reason, which never ends the connection.
     */
    async read(request: UnitRequest, timeoutMs: number, signal: AbortSignal, conclusive = true): Promise<Result> {
      using _turn = await mutex.take(request.unit, signal);
      return await readInTurn({ request, timeoutMs, signal, conclusive });
    },
    /**
     * Like `read`, for a unit or address that may not exist. The result has no effect on the state of the connection or
     * of its units. `signal` ends only the wait for the turn: a late answer could be mistaken for that of a poll.
     */
    async search(request: UnitRequest, timeoutMs: number, signal: AbortSignal): Promise<Result> {
      using _turn = await mutex.take(searchTurn, signal);
      return await readInTurn({ request, timeoutMs, signal: closing.signal, conclusive: undefined });
    },
    async [Symbol.asyncDispose](): Promise<void> {
      lingering.abort();
      failure ??= new AgentError("SOURCE_UNREACHABLE", "the connection was closed");
      closing.abort(failure);
      countDiscarded();
      await exchange[Symbol.asyncDispose]();
    },
  };
}

const outcomes = {
  data: "ok",
  exception: "exception",
  silence: "timeout",
  contested: "contested",
} as const satisfies Record<Result["kind"], string>;
