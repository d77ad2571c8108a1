// State and counters of the uploader, for the status and the metrics.
import { type ErrorCode, errorCodes, isAgentError } from "../../core/errors.ts";
import type { EpochMicros, InputId } from "../../core/point.ts";
import type { Runtime } from "../../core/runtime.ts";
import { Since } from "../../lib/time/since.ts";
import type { CallOutcome } from "../client/rpc-client.ts";
import type { ParkedStatus } from "../failures/parked-inputs.ts";
import type { Catalog } from "../signals/catalog.ts";
import type { SignalWatchStatus } from "../signals/signal-watch.ts";

/**
 * `idle`: nothing to send. `sending`: requests are running. `throttled`: the service asked to wait. `holding`: it
 * refuses the agent or its data; an operator must act, and nothing is dropped. `unreachable`: no valid answer; retried
 * indefinitely.
 */
export type DeliveryState = "idle" | "sending" | "throttled" | "holding" | "unreachable";

export type Trouble = Exclude<DeliveryState, "idle" | "sending">;

export interface UploadFailure {
  readonly code: ErrorCode;
  readonly message: string;
  readonly hint: string;
  readonly at: EpochMicros;
}

export interface TrafficStatus {
  readonly sentBytes: number;
  readonly receivedBytes: number;
  readonly bytesPerMonth: number | undefined;
}

/** Counts start with the process unless stated otherwise. */
export interface DeliveryStatus {
  readonly state: DeliveryState;
  /** When `state` was entered. `idle` and `sending` count as one state. */
  readonly since: EpochMicros;
  /** The last failure. `current`: it persists. */
  readonly lastError: (UploadFailure & { readonly current: boolean }) | undefined;
  readonly lastSuccess: EpochMicros | undefined;
  /** Time of fresh points from the buffer to acceptance, or their present waiting time, in milliseconds. */
  readonly lagMs: number;
  readonly requests: { readonly started: number; readonly accepted: number; readonly failed: number };
  readonly points: number;
  /** Points accepted per second during the last minute, which is the drain rate of a backlog. */
  readonly pointsPerSecond: number;
  readonly bytes: number;
  /** Of the last accepted request; 0: none yet. */
  readonly pointsPerRequest: number;
  readonly bytesPerRequest: number;
  /** Points refused for good, since the data directory was created. */
  readonly rejected: number;
  /** Refused points that cannot be written to disk at present and stay in the buffer. */
  readonly unkept: number;
  /** Requests started within the last minute, as a share of the permitted rate, 0 to 1. */
  readonly budgetShare: number;
  /** Bytes exchanged with the service, and what they come to in 30 days. `perMonth` is undefined for the first minutes. */
  readonly traffic: TrafficStatus;
  /** Leased points that are not settled. */
  readonly inFlight: number;
  /** Inputs whose points wait in the buffer, because the service refuses or does not confirm them. */
  readonly parked: ParkedStatus;
  readonly signals: {
    readonly known: number;
    /** Signals whose metadata must still be saved. */
    readonly pending: number;
    readonly saved: number;
    /** Metadata that the service refused, at most 100 entries. Their points are still sent. */
    readonly refused: readonly { readonly input: InputId; readonly reason: string }[];
    /** Comparison with the signals of the service. Undefined: disabled. */
    readonly watch: SignalWatchStatus | undefined;
  };
}

const requests = {
  name: "upload_requests_total",
  help: "Requests to store points, by outcome.",
  labels: ["outcome"],
} as const;
const points = { name: "upload_points_total", help: "Points the service has accepted." } as const;
const bytes = { name: "upload_request_bytes_total", help: "Bytes of the requests that were accepted." } as const;
const rejects = { name: "upload_rejected_points_total", help: "Points the service refused for good." } as const;
const perRequest = { name: "upload_points_per_request", help: "Points of the last accepted request." } as const;
const bytesPerRequest = { name: "upload_bytes_per_request", help: "Bytes of the last accepted request." } as const;

const minuteMs = 60_000;
const mostShown = 100;
const monthMs = 30 * 86_400_000;
/** Before, the metadata of the start would weigh too much. */
const estimatedAfterMs = 10 * minuteMs;

const isWell = (state: DeliveryState) => state === "idle" || state === "sending";

/** Counts requests and points, and stores state and last failure. */
export class UploadTally {
  readonly #runtime: Runtime;
  readonly #requestsPerSecond: number;
  #state: DeliveryState = "idle";
  readonly #since: Since;
  #lastError: UploadFailure | undefined;
  #failing = false;
  /** Why metadata cannot be saved, independent of points. */
  #saveFailure: { readonly state: DeliveryState; readonly failure: UploadFailure } | undefined;
  #lastSuccess: EpochMicros | undefined;
  #started = 0;
  #accepted = 0;
  #failed = 0;
  #points = 0;
  #bytes = 0;
  #lastPoints = 0;
  #lastBytes = 0;
  #lastLagMs = 0;
  /** Request starts of the last minute, in monotonic milliseconds. */
  #starts: number[] = [];
  /** Accepted points of the last minute with their times. */
  #recent: { readonly at: number; readonly points: number }[] = [];
  readonly #opened: number;

  constructor(runtime: Runtime, requestsPerSecond: number) {
    this.#runtime = runtime;
    this.#requestsPerSecond = requestsPerSecond;
    this.#since = new Since(runtime.clock);
    this.#opened = runtime.clock.monotonic();
  }

  started(): void {
    this.#started++;
    const now = this.#runtime.clock.monotonic();
    this.#starts.push(now);
    while (this.#starts[0] !== undefined && this.#starts[0] < now - minuteMs) this.#starts.shift();
  }

  accepted(frame: { readonly points: number; readonly bytes: number; readonly lagMs: number | undefined }): void {
    const { metrics, clock } = this.#runtime;
    this.#accepted++;
    this.#points += frame.points;
    this.#bytes += frame.bytes;
    this.#lastPoints = frame.points;
    this.#lastBytes = frame.bytes;
    if (frame.lagMs !== undefined) this.#lastLagMs = frame.lagMs;
    this.#lastSuccess = clock.now();
    const at = clock.monotonic();
    this.#recent.push({ at, points: frame.points });
    while (this.#recent[0] !== undefined && this.#recent[0].at < at - minuteMs) this.#recent.shift();
    metrics.counter(requests).add(1, { outcome: "accepted" });
    metrics.counter(points).add(frame.points);
    metrics.counter(bytes).add(frame.bytes);
    metrics.gauge(perRequest).set(frame.points);
    metrics.gauge(bytesPerRequest).set(frame.bytes);
    this.enter("sending");
  }

  failed(outcome: string): void {
    this.#failed++;
    this.#runtime.metrics.counter(requests).add(1, { outcome });
  }

  rejected(count: number): void {
    this.#runtime.metrics.counter(rejects).add(count);
  }

  /** Enters a state that lasts until the next success. Logs its start, not each retry. */
  trouble(state: Trouble, code: ErrorCode, message: string, hint: string = errorCodes[code].hint): void {
    const at = this.#runtime.clock.now();
    const news = !this.#failing || this.#state !== state;
    this.enter(state);
    this.#failing = true;
    this.#lastError = { code, message, hint, at };
    if (news)
      this.#runtime.log.warn({ code, reason: message, hint }, `delivery is ${state}, points stay in the buffer`);
  }

  /** Records the outcome of saving metadata. The status shows a failure unless points have one too. */
  saved(verdict: CallOutcome): void {
    const failed = (state: DeliveryState, code: ErrorCode, reason: string, hint: string = errorCodes[code].hint) => {
      const failure = {
        code,
        message: `saving metadata: ${reason}`,
        hint,
        at: this.#runtime.clock.now(),
      };
      if (this.#saveFailure?.failure.message !== failure.message)
        this.#runtime.log.warn({ code, reason, hint: failure.hint }, "metadata cannot be saved for now");
      this.#saveFailure = { state, failure };
    };
    if (verdict.kind === "unauthorized") failed("holding", "SERVICE_REFUSED", verdict.reason, verdict.hint);
    else if (verdict.kind === "unavailable")
      failed(
        "unreachable",
        isAgentError(verdict.cause, "SERVICE_UNTRUSTED") ? verdict.cause.code : "SERVICE_UNREACHABLE",
        verdict.cause.message,
        isAgentError(verdict.cause) ? verdict.cause.hint : undefined,
      );
    else if (verdict.kind === "throttled") failed("throttled", "SERVICE_UNREACHABLE", "the service asked to wait");
    else this.#saveFailure = undefined;
  }

  /** Nothing is left to send. `someParked`: the last failure stays current until a request is accepted. */
  idle(someParked: boolean): void {
    if (!someParked || !this.#failing || this.#lastError?.code === "BUFFER_UNAVAILABLE") this.enter("idle");
  }

  enter(state: DeliveryState): void {
    if (state === this.#state) return;
    if (this.#failing && (state === "sending" || state === "idle")) {
      this.#failing = false;
      this.#runtime.log.info({ before: this.#state }, "delivery goes on");
    }
    // The pause between two requests is no change of state.
    if (!isWell(state) || !isWell(this.#state)) this.#since.restart();
    this.#state = state;
  }

  status(now: {
    readonly waitedMs: number | undefined;
    readonly rejected: number;
    readonly unkept: number;
    readonly inFlight: number;
    readonly parked: ParkedStatus;
    readonly catalog: Catalog;
    readonly watch: SignalWatchStatus | undefined;
    readonly traffic: Omit<TrafficStatus, "bytesPerMonth">;
  }): DeliveryStatus {
    const { clock } = this.#runtime;
    const monotonic = clock.monotonic();
    const recent = this.#starts.filter((start) => start >= monotonic - minuteMs).length;
    const seconds = Math.min(minuteMs, Math.max(1_000, monotonic - this.#opened)) / 1_000;
    const drained = this.#recent
      .filter(({ at }) => at >= monotonic - minuteMs)
      .reduce((sum, { points: of }) => sum + of, 0);
    const { catalog, traffic } = now;
    const openMs = monotonic - this.#opened;
    const bytesPerMonth =
      openMs < estimatedAfterMs ? undefined : ((traffic.sentBytes + traffic.receivedBytes) * monthMs) / openMs;
    const saving = this.#failing ? undefined : this.#saveFailure;
    const lastError = saving
      ? { ...saving.failure, current: true }
      : this.#lastError && { ...this.#lastError, current: this.#failing };
    return {
      state: saving?.state ?? this.#state,
      since: this.#since.time,
      lastError,
      lastSuccess: this.#lastSuccess,
      lagMs: Math.round(Math.max(now.waitedMs ?? 0, this.#state === "idle" ? 0 : this.#lastLagMs)),
      requests: { started: this.#started, accepted: this.#accepted, failed: this.#failed },
      points: this.#points,
      pointsPerSecond: drained / seconds,
      bytes: this.#bytes,
      pointsPerRequest: this.#lastPoints,
      bytesPerRequest: this.#lastBytes,
      rejected: now.rejected,
      unkept: now.unkept,
      budgetShare: Math.min(1, recent / ((minuteMs / 1_000) * this.#requestsPerSecond)),
      traffic: { ...traffic, bytesPerMonth },
      inFlight: now.inFlight,
      parked: now.parked,
      signals: {
        known: catalog.size,
        pending: catalog.pending.size,
        saved: catalog.savedCount,
        refused: [...catalog.refused.entries().take(mostShown)].map(([input, reason]) => ({ input, reason })),
        watch: now.watch,
      },
    };
  }
}
