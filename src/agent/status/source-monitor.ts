// The observable state of one source: status, counters, and a log line on each change.
import type { AgentError, ErrorCode } from "../../core/errors.ts";
import { isAgentError, reasonOf, remedyOf } from "../../core/errors.ts";
import type { EpochMicros } from "../../core/point.ts";
import type { MetricDeclaration, Runtime } from "../../core/runtime.ts";
import type { Source } from "../../core/source.ts";
import { Since } from "../../lib/time/since.ts";
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

export type MonitoredSource = Pick<SourceStatus, "name" | "type" | "url" | "tags">;

/** The same error is logged again only after this time, in milliseconds. */
const repeatAfterMs = 600_000;

/** In milliseconds. A connection that was shorter and gave no point counts as the same failure continuing. */
const steadyAfterMs = 60_000;

/** How long after reconnecting a session takeover is still shown as the source's error, in milliseconds. */
const takeoverShownMs = 600_000;

/** Updated by the pipeline and read by the status. */
export class SourceMonitor {
  readonly #source: MonitoredSource;
  readonly #runtime: Runtime;
  readonly #labels: { readonly source: string };
  readonly #counters;
  #state: SourceState = "opening";
  readonly #since: Since;
  #error: ShownError | undefined;
  #takenOverAtMs = Number.NEGATIVE_INFINITY;
  #bufferError: ShownError | undefined;
  #connection: Source | undefined;
  #readings = 0;
  #points = 0;
  #lastReading: EpochMicros | undefined;
  /** The last logged error, its repetitions since, and whether "connected" was logged after it. */
  #logged: { readonly message: string; readonly atMs: number } | undefined;
  #repeats = 0;
  #connectedLogged = false;
  #onlineAtMs = 0;
  #gavePoints = false;
  /** Whether the last connection was lost before it was useful. Its error then stays valid on the next connection. */
  #flapping = false;
  #attempt = 0;
  #reconnects = 0;
  readonly #rate: Rate;

  constructor(source: MonitoredSource, runtime: Runtime) {
    this.#source = source;
    this.#runtime = {
      ...runtime,
      log: runtime.log.child({ part: "source", source: source.name, driver: source.type }),
    };
    this.#labels = { source: source.name };
    this.#since = new Since(runtime.clock);
    this.#rate = new Rate(() => runtime.clock.monotonic());
    this.#counters = {
      readings: runtime.metrics.counter(metrics.readings),
      points: runtime.metrics.counter(metrics.points),
      online: runtime.metrics.gauge(metrics.online),
      losses: runtime.metrics.counter(metrics.losses),
    };
    this.#counters.online.set(0, this.#labels);
  }

  get name(): string {
    return this.#source.name;
  }

  /** The live connection. Undefined: there is none. */
  get connection(): Source | undefined {
    return this.#connection;
  }

  connecting(): void {
    this.#attempt++;
  }

  online(connection: Source): void {
    this.#connection = connection;
    this.#onlineAtMs = this.#runtime.clock.monotonic();
    this.#gavePoints = false;
    this.#enter("online");
    this.#counters.online.set(1, this.#labels);
    if (!this.#connectedLogged) this.#runtime.log.info({ attempt: this.#attempt }, "connected");
    this.#connectedLogged = true;
    this.#attempt = 0;
  }

  delivered(readings: number, points: number): void {
    this.#readings += readings;
    this.#points += points;
    if (readings > 0) this.#lastReading = this.#runtime.clock.now();
    if (points > 0) this.#gavePoints = true;
    this.#rate.count(readings);
    this.#counters.readings.add(readings, this.#labels);
    this.#counters.points.add(points, this.#labels);
  }

  /** The connection was lost or failed; the next attempt follows after `waitMs` milliseconds. */
  lost(error: unknown, waitMs: number): void {
    this.#connection = undefined;
    const isTakeover = isAgentError(error, "SOURCE_TAKEN_OVER");
    // After a takeover, the other client may leave us connected long enough to receive some messages.
    if (this.#isSteady() && !isTakeover) this.#logged = undefined;
    this.#flapping = this.#state === "online" && !this.#isSteady();
    this.#takenOverAtMs = isTakeover ? this.#runtime.clock.monotonic() : Number.NEGATIVE_INFINITY;
    const { message, remedy: hint, code } = (this.#error = shownError(error));
    this.#enter("waiting");
    this.#reconnects++;
    this.#counters.online.set(0, this.#labels);
    this.#counters.losses.add(1, this.#labels);
    const nowMs = this.#runtime.clock.monotonic();
    if (this.#logged?.message === message && nowMs - this.#logged.atMs < repeatAfterMs) {
      this.#repeats++;
      return;
    }
    const repeats = this.#repeats;
    this.#logged = { message, atMs: nowMs };
    this.#repeats = 0;
    this.#connectedLogged = false;
    const fields = {
      code,
      attempt: this.#attempt,
      retryInMs: Math.round(waitMs),
      hint,
      reason: message,
      ...(repeats > 0 && { repeats }),
    };
    // An error without a code is a defect, so its stack is logged.
    if (code) this.#runtime.log.warn(fields, "source lost");
    else this.#runtime.log.error({ ...fields, err: error }, "source failed unexpectedly");
  }

  /** Called with the error when points cannot be stored, and with undefined when they can again. */
  bufferFailed(error: AgentError | undefined): void {
    if (error && !this.#bufferError)
      this.#runtime.log.error(
        { code: error.code, reason: error.message, hint: error.hint },
        "points cannot be stored, reading is held back",
      );
    if (!error && this.#bufferError) this.#runtime.log.info({}, "points are stored again");
    this.#bufferError = error && shownError(error);
  }

  stopped(): void {
    this.#connection = undefined;
    this.#enter("stopped");
    this.#counters.online.set(0, this.#labels);
  }

  /** The part of the status that is read frequently. */
  vitals(): { readonly name: string; readonly online: boolean; readonly readingsPerSecond: number } {
    return {
      name: this.#source.name,
      online: this.#state === "online",
      readingsPerSecond: this.#rate.perSecond(),
    };
  }

  status(): SourceStatus {
    const isLost = this.#state !== "online" || (this.#flapping && !this.#isSteady()) || this.#wasTakenOver();
    const error = this.#bufferError ?? (isLost ? this.#error : undefined);
    const unknown = this.#connection?.unknown?.() ?? [];
    return {
      ...this.#source,
      state: this.#state,
      since: this.#since.time,
      ...(error && { error: error.message }),
      ...(error?.remedy && { remedy: error.remedy }),
      ...(error?.code && { code: error.code }),
      readings: this.#readings,
      points: this.#points,
      reconnects: this.#reconnects,
      readingsPerSecond: this.#rate.perSecond(),
      ...(this.#lastReading !== undefined && { lastReading: this.#lastReading }),
      details: this.#connection?.details?.() ?? {},
      ...(unknown.length > 0 && { unknown }),
    };
  }

  #wasTakenOver(): boolean {
    return this.#runtime.clock.monotonic() - this.#takenOverAtMs < takeoverShownMs;
  }

  warnings(): readonly Warning[] {
    const { name } = this.#source;
    const warnings = this.#connection?.warnings?.() ?? [];
    return warnings.map(({ message, remedy }) => ({ level: "warn", message: `${name}: ${message}`, remedy }));
  }

  #isSteady(): boolean {
    if (this.#state !== "online") return false;
    return this.#gavePoints || this.#runtime.clock.monotonic() - this.#onlineAtMs >= steadyAfterMs;
  }

  #enter(state: SourceState): void {
    if (state === this.#state) return;
    this.#state = state;
    this.#since.restart();
  }
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
