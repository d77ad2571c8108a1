// The observable state of one source: status, counters, and a log line on each change.
import { type ConfiguredSource, sourceAddress } from "../../config/format/config.ts";
import { type AgentError, type ErrorCode, isAgentError, reasonOf, remedyOf } from "../../core/errors.ts";
import type { EpochMicros } from "../../core/point.ts";
import type { MetricDeclaration, Runtime } from "../../core/runtime.ts";
import type { Source } from "../../core/source.ts";
import { withoutSecrets } from "../../lib/text/without-secrets.ts";
import { Since } from "../../lib/time/clock.ts";
import type { SourceState, SourceStatus, Warning } from "./status.ts";

const metrics = {
  readings: { name: "source_readings_total", help: "Readings that a source delivered", labels: ["source"] },
  points: { name: "source_points_total", help: "Points that came of them, after mapping", labels: ["source"] },
  online: { name: "source_online", help: "1 while the source is online, else 0", labels: ["source"] },
  losses: {
    name: "source_connection_losses_total",
    help: "Connections that were lost or could not be opened",
    labels: ["source"],
  },
} as const satisfies Record<string, MetricDeclaration<"source">>;

type MonitoredSource = Pick<SourceStatus, "name" | "type" | "url" | "tags">;

export function monitoredSource({ name, driver, options, tags }: ConfiguredSource): MonitoredSource {
  const url = sourceAddress(options);
  return { name, type: driver.type, tags: tags.length, ...(url !== undefined && { url: withoutSecrets(url) }) };
}

/** The same error is logged again only after this time, in milliseconds. */
const repeatAfterMs = 600_000;

/** In milliseconds. A connection that was shorter and gave no point counts as the same failure continuing. */
const steadyAfterMs = 60_000;

/** How long after reconnecting a session takeover is still shown as the source's error, in milliseconds. */
const takeoverShownMs = 600_000;

/** Updated by the pipeline and read by the status. */
export type SourceMonitor = ReturnType<typeof sourceMonitor>;

export function sourceMonitor(source: MonitoredSource, runtime: Runtime) {
  const { clock, metrics: registry } = runtime;
  const log = runtime.log.child({ part: "source", source: source.name, driver: source.type });
  const counters = {
    readings: registry.counter(metrics.readings),
    points: registry.counter(metrics.points),
    online: registry.gauge(metrics.online),
    losses: registry.counter(metrics.losses),
  };
  let state: SourceState = "opening";
  let takenOverAtMs = Number.NEGATIVE_INFINITY;
  let readCount = 0;
  let pointCount = 0;
  let repeated = 0;
  let connectedLogged = false;
  let onlineAtMs = 0;
  let gavePoints = false;
  /** Whether the last connection was lost before it was useful. Its error then stays valid on the next connection. */
  let flapping = false;
  let attempt = 0;
  let reconnects = 0;
  let lastError: ShownError | undefined;
  let bufferError: ShownError | undefined;
  let live: Source | undefined;
  let lastReading: EpochMicros | undefined;
  /** The last logged error, its repetitions since, and whether "connected" was logged after it. */
  let logged: { readonly message: string; readonly atMs: number } | undefined;
  const labels = { source: source.name };
  const since = new Since(clock);
  const rate = new Rate(() => clock.monotonic());
  counters.online.set(0, labels);

  function wasTakenOver(): boolean {
    return clock.monotonic() - takenOverAtMs < takeoverShownMs;
  }

  function isSteady(): boolean {
    if (state !== "online") return false;
    return gavePoints || clock.monotonic() - onlineAtMs >= steadyAfterMs;
  }

  function enter(next: SourceState): void {
    if (next === state) return;
    state = next;
    since.restart();
  }

  return {
    name: source.name,
    /** The live connection. Undefined: there is none. */
    get connection(): Source | undefined {
      return live;
    },
    connecting(): void {
      attempt++;
    },
    online(connection: Source): void {
      live = connection;
      onlineAtMs = clock.monotonic();
      gavePoints = false;
      enter("online");
      counters.online.set(1, labels);
      if (!connectedLogged) log.info({ attempt }, "connected");
      connectedLogged = true;
      attempt = 0;
    },
    delivered(readings: number, points: number): void {
      readCount += readings;
      pointCount += points;
      if (readings > 0) lastReading = clock.now();
      if (points > 0) gavePoints = true;
      rate.count(readings);
      counters.readings.add(readings, labels);
      counters.points.add(points, labels);
    },
    /** The connection was lost or failed; the next attempt follows after `waitMs` milliseconds. */
    lost(error: unknown, waitMs: number): void {
      live = undefined;
      const isTakeover = isAgentError(error, "SOURCE_TAKEN_OVER");
      // After a takeover, the other client may leave us connected long enough to receive some messages.
      if (isSteady() && !isTakeover) logged = undefined;
      flapping = state === "online" && !isSteady();
      takenOverAtMs = isTakeover ? clock.monotonic() : Number.NEGATIVE_INFINITY;
      const { message, remedy: hint, code } = (lastError = shownError(error));
      enter("waiting");
      reconnects++;
      counters.online.set(0, labels);
      counters.losses.add(1, labels);
      const nowMs = clock.monotonic();
      if (logged?.message === message && nowMs - logged.atMs < repeatAfterMs) {
        repeated++;
        return;
      }
      const repeats = repeated;
      logged = { message, atMs: nowMs };
      repeated = 0;
      connectedLogged = false;
      const fields = {
        code,
        attempt,
        retryInMs: Math.round(waitMs),
        hint,
        reason: message,
        ...(repeats > 0 && { repeats }),
      };
      // An error without a code is a defect, so its stack is logged.
      if (code) log.warn(fields, "source lost");
      else log.error({ ...fields, err: error }, "source failed unexpectedly");
    },
    /** Called with the error when points cannot be stored, and with undefined when they can again. */
    bufferFailed(error: AgentError | undefined): void {
      if (error && !bufferError)
        log.error(
          { code: error.code, reason: error.message, hint: error.hint },
          "points cannot be stored, reading is held back",
        );
      if (!error && bufferError) log.info({}, "points are stored again");
      bufferError = error && shownError(error);
    },
    stopped(): void {
      live = undefined;
      enter("stopped");
      counters.online.set(0, labels);
    },
    /** The part of the status that is read frequently. */
    vitals(): { readonly name: string; readonly online: boolean; readonly readingsPerSecond: number } {
      return { name: source.name, online: state === "online", readingsPerSecond: rate.perSecond() };
    },
    status(): SourceStatus {
      const isLost = state !== "online" || (flapping && !isSteady()) || wasTakenOver();
      const error = bufferError ?? (isLost ? lastError : undefined);
      const unknown = live?.unknown?.() ?? [];
      return {
        ...source,
        state,
        since: since.time,
        ...(error && { error: error.message }),
        ...(error?.remedy && { remedy: error.remedy }),
        ...(error?.code && { code: error.code }),
        readings: readCount,
        points: pointCount,
        reconnects,
        readingsPerSecond: rate.perSecond(),
        ...(lastReading !== undefined && { lastReading }),
        details: live?.details?.() ?? {},
        ...(unknown.length > 0 && { unknown }),
      };
    },
    warnings(): readonly Warning[] {
      const { name } = source;
      const warnings = live?.warnings?.() ?? [];
      return warnings.map(({ message, remedy }) => ({ level: "warn", message: `${name}: ${message}`, remedy }));
    },
  };
}

interface ShownError {
  readonly message: string;
  readonly remedy: string | undefined;
  /** Undefined: a defect of the program. */
  readonly code: ErrorCode | undefined;
}

function shownError(error: unknown): ShownError {
  return { message: reasonOf(error), remedy: remedyOf(error), code: isAgentError(error) ? error.code : undefined };
}

/** Readings a second, averaged over the last ten seconds. */
class Rate {
  readonly #nowMs: () => number;
  readonly #slots = new Float64Array(11);
  #slot = 0;

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
    this.#slot = Math.floor(nowMs() / 1_000);
  }

  count(n: number): void {
    this.#turn();
    const index = this.#slot % 11;
    this.#slots[index] = (this.#slots[index] ?? 0) + n;
  }

  perSecond(): number {
    this.#turn();
    let sum = 0;
    for (let age = 1; age <= 10; age++) sum += this.#slots[(((this.#slot - age) % 11) + 11) % 11] ?? 0;
    return sum / 10;
  }

  #turn(): void {
    const now = Math.floor(this.#nowMs() / 1_000);
    for (let slot = Math.max(this.#slot + 1, now - 10); slot <= now; slot++) this.#slots[slot % 11] = 0;
    this.#slot = now;
  }
}
