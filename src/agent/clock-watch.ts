// Whether the wall clock can be believed. A gateway without a battery starts in 1970, or where it was switched off, until
// time synchronisation has set it: what is stamped before that would be stored under a wrong time for good.
import { type EpochMicros, epochMicros } from "../core/point.ts";
import type { MetricDeclaration, Runtime } from "../core/runtime.ts";
import { isAbort } from "../lib/abort.ts";
import type { TimeEvidence } from "./time-evidence.ts";

export interface ClockWatchOptions {
  /** write: it is believed whatever it says. */
  readonly policy: "hold" | "write";
  readonly evidence: TimeEvidence;
  /** When an agent last ran with this data directory. Undefined: none has. */
  readonly lastRan: EpochMicros | undefined;
}

const metrics = {
  trusted: { name: "clock_trusted", help: "1 while the times of this machine can be believed, else 0" },
  steps: { name: "clock_steps_total", help: "Times the wall clock was set while the agent ran, by more than a second" },
} as const satisfies Record<string, MetricDeclaration>;

/** No clock is right that says it is before this: there was no agent then. */
const earliest = epochMicros(Date.parse("2025-01-01T00:00:00Z") * 1_000);
const checkEveryMs = 1_000;
/** So much earlier than an agent ran last is an error of the clock and no correction. */
const behindUs = 60e6;
/** How long doubts of less weight are waited for: a plant without time synchronisation must not stay silent. */
const behindForMs = 120_000;
const unsyncedForMs = 60_000;
/** A change of the wall clock that is told. */
const stepUs = 1e6;

/** What is wrong with the clock. */
interface Doubt {
  readonly reason: string;
  /** How long it is waited for, from the start. Undefined: until it is gone. */
  readonly forMs?: number;
}

/** Disposing it ends its looking. */
export class ClockWatch implements AsyncDisposable {
  readonly #options: ClockWatchOptions;
  readonly #runtime: Runtime;
  readonly #startedMs: number;
  readonly #trusted;
  readonly #steps;
  readonly #set = Promise.withResolvers<void>();
  readonly #ending = new AbortController();
  #doubt: Doubt | undefined;
  #working: Promise<void> = Promise.resolve();

  private constructor(options: ClockWatchOptions, runtime: Runtime) {
    this.#options = options;
    this.#runtime = runtime;
    this.#startedMs = runtime.clock.monotonic();
    this.#trusted = runtime.metrics.gauge(metrics.trusted);
    this.#steps = runtime.metrics.counter(metrics.steps);
    this.#steps.add(0);
  }

  /** Resolves when it is known whether the clock can be believed now. */
  static async open(options: ClockWatchOptions, runtime: Runtime): Promise<ClockWatch> {
    const watch = new ClockWatch(options, runtime);
    watch.#doubt = await watch.#judge();
    if (watch.#doubt)
      runtime.log.error(
        { reason: watch.#doubt.reason, hint: unsetClockHint },
        "the clock is not set: readings that it would stamp wait until it is",
      );
    watch.#tell();
    watch.#working = watch.#work();
    return watch;
  }

  /** Once it is, it stays so. */
  get trusted(): boolean {
    return this.#doubt === undefined;
  }

  /** Why it is not believed, for people. */
  get reason(): string | undefined {
    return this.#doubt?.reason;
  }

  /** Resolves when it can be believed. */
  get set(): Promise<void> {
    return this.#set.promise;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#ending.abort(new Error("the agent stops"));
    await this.#working;
  }

  async #work(): Promise<void> {
    const { clock, log } = this.#runtime;
    const signal = this.#ending.signal;
    try {
      for (;;) {
        const before = { wall: clock.now(), ms: clock.monotonic() };
        await clock.sleep(checkEveryMs, signal);
        const expected = before.wall + (clock.monotonic() - before.ms) * 1_000;
        const step = clock.now() - expected;
        if (Math.abs(step) > stepUs) {
          this.#steps.add(1);
          log.warn({ from: rfc3339(expected), to: rfc3339(clock.now()) }, "the wall clock was set");
        }
        if (this.#doubt) await this.#lookAgain();
      }
    } catch (error) {
      if (!isAbort(error, signal)) log.error({ err: error }, "the clock is no longer watched");
    }
  }

  async #lookAgain(): Promise<void> {
    const { clock, log } = this.#runtime;
    const doubt = await this.#judge();
    const waited = clock.monotonic() - this.#startedMs;
    if (doubt && (doubt.forMs === undefined || waited < doubt.forMs)) {
      this.#doubt = doubt;
      return;
    }
    this.#doubt = undefined;
    if (doubt) log.warn({ reason: doubt.reason, afterMs: Math.round(waited) }, "the clock is believed nevertheless");
    else log.info({ now: rfc3339(clock.now()) }, "the clock is set, readings that waited get their right times");
    this.#tell();
  }

  #tell(): void {
    this.#trusted.set(this.trusted ? 1 : 0);
    if (this.trusted) this.#set.resolve();
  }

  async #judge(): Promise<Doubt | undefined> {
    const { policy, evidence, lastRan } = this.#options;
    if (policy === "write") return undefined;
    const now = this.#runtime.clock.now();
    if (now < earliest) return { reason: `it says ${rfc3339(now)}, which cannot be` };
    const synchronised = await evidence.synchronised();
    if (synchronised === "yes") return undefined;
    if (lastRan !== undefined && now < lastRan - behindUs)
      return { reason: `it says ${rfc3339(now)}, and the agent ran until ${rfc3339(lastRan)}`, forMs: behindForMs };
    if (synchronised === "notYet" && !(await evidence.hasHardwareClock()))
      return { reason: "the machine has no hardware clock, and time is not synchronised yet", forMs: unsyncedForMs };
    return undefined;
  }
}

export const unsetClockHint = "set the clock, or have it synchronised; with agent.unsyncedClock: write nothing waits";

function rfc3339(time: number): string {
  return new Date(time / 1_000).toISOString();
}
