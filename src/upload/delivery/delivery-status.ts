// State and counters of the uploader, for the status and the metrics.
import { type ErrorCode, errorCodes, isAgentError } from "../../core/errors.ts";
import type { EpochMicros, InputId } from "../../core/point.ts";
import type { Runtime } from "../../core/runtime.ts";
import { Since } from "../../lib/time/clock.ts";
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
  /**
   * Time of fresh points from the buffer to acceptance, or their present waiting time, in milliseconds. Includes those that
   * are backlog because more come than can be sent, but not the backlog of an outage.
   */
  readonly lagMs: number;
  readonly requests: { readonly started: number; readonly accepted: number; readonly failed: number };
  readonly points: number;
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
export type UploadTally = ReturnType<typeof uploadTally>;

export function uploadTally(runtime: Runtime, requestsPerSecond: number) {
  let current: DeliveryState = "idle";
  let failing = false;
  let startedCount = 0;
  let acceptedCount = 0;
  let failedCount = 0;
  let allPoints = 0;
  let lastPoints = 0;
  let lastBytes = 0;
  let lastLagMs = 0;
  /** Request starts of the last minute, in monotonic milliseconds. */
  const starts: number[] = [];
  let lastError: UploadFailure | undefined;
  /** Why metadata cannot be saved, independent of points. */
  let saveFailure: { readonly state: DeliveryState; readonly failure: UploadFailure } | undefined;
  let lastSuccess: EpochMicros | undefined;
  const since = new Since(runtime.clock);
  const opened = runtime.clock.monotonic();

  function enter(state: DeliveryState): void {
    if (state === current) return;
    if (failing && (state === "sending" || state === "idle")) {
      failing = false;
      runtime.log.info({ before: current }, "delivery goes on");
    }
    // The pause between two requests is no change of state.
    if (!isWell(state) || !isWell(current)) since.restart();
    current = state;
  }

  return {
    enter,
    /** Requests that were accepted since the start. */
    get acceptedRequests(): number {
      return acceptedCount;
    },
    started(): void {
      startedCount++;
      const now = runtime.clock.monotonic();
      starts.push(now);
      while (starts[0] !== undefined && starts[0] < now - minuteMs) starts.shift();
    },
    accepted(frame: { readonly points: number; readonly bytes: number; readonly lagMs: number | undefined }): void {
      const { metrics, clock } = runtime;
      acceptedCount++;
      allPoints += frame.points;
      lastPoints = frame.points;
      lastBytes = frame.bytes;
      if (frame.lagMs !== undefined) lastLagMs = frame.lagMs;
      lastSuccess = clock.now();
      metrics.counter(requests).add(1, { outcome: "accepted" });
      metrics.counter(points).add(frame.points);
      metrics.counter(bytes).add(frame.bytes);
      metrics.gauge(perRequest).set(frame.points);
      metrics.gauge(bytesPerRequest).set(frame.bytes);
      enter("sending");
    },
    failed(outcome: string): void {
      failedCount++;
      runtime.metrics.counter(requests).add(1, { outcome });
    },
    rejected(count: number): void {
      runtime.metrics.counter(rejects).add(count);
    },
    /** Enters a state that lasts until the next success. Logs its start, not each retry. */
    trouble(state: Trouble, code: ErrorCode, message: string, hint: string = errorCodes[code].hint): void {
      const at = runtime.clock.now();
      const news = !failing || current !== state;
      enter(state);
      failing = true;
      lastError = { code, message, hint, at };
      if (news) runtime.log.warn({ code, reason: message, hint }, `delivery is ${state}, points stay in the buffer`);
    },
    /** Records the outcome of saving metadata. The status shows a failure unless points have one too. */
    saved(verdict: CallOutcome): void {
      const failed = (state: DeliveryState, code: ErrorCode, reason: string, hint: string = errorCodes[code].hint) => {
        const failure = { code, message: `saving metadata: ${reason}`, hint, at: runtime.clock.now() };
        if (saveFailure?.failure.message !== failure.message)
          runtime.log.warn({ code, reason, hint: failure.hint }, "metadata cannot be saved for now");
        saveFailure = { state, failure };
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
      else saveFailure = undefined;
    },
    /** Nothing is left to send. `someParked`: the last failure stays current until a request is accepted. */
    idle(someParked: boolean): void {
      if (!someParked || !failing || lastError?.code === "BUFFER_UNAVAILABLE") enter("idle");
    },
    status(now: {
      readonly waitedMs: number;
      readonly rejected: number;
      readonly unkept: number;
      readonly inFlight: number;
      readonly parked: ParkedStatus;
      readonly catalog: Catalog;
      readonly watch: SignalWatchStatus | undefined;
      readonly traffic: Omit<TrafficStatus, "bytesPerMonth">;
    }): DeliveryStatus {
      const monotonic = runtime.clock.monotonic();
      const recent = starts.filter((start) => start >= monotonic - minuteMs).length;
      const { catalog, traffic } = now;
      const openMs = monotonic - opened;
      const bytesPerMonth =
        openMs < estimatedAfterMs ? undefined : ((traffic.sentBytes + traffic.receivedBytes) * monthMs) / openMs;
      const saving = failing ? undefined : saveFailure;
      return {
        state: saving?.state ?? current,
        since: since.time,
        lastError: saving ? { ...saving.failure, current: true } : lastError && { ...lastError, current: failing },
        lastSuccess,
        lagMs: Math.round(Math.max(now.waitedMs, current === "idle" ? 0 : lastLagMs)),
        requests: { started: startedCount, accepted: acceptedCount, failed: failedCount },
        points: allPoints,
        pointsPerRequest: lastPoints,
        bytesPerRequest: lastBytes,
        rejected: now.rejected,
        unkept: now.unkept,
        budgetShare: Math.min(1, recent / ((minuteMs / 1_000) * requestsPerSecond)),
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
    },
  };
}
