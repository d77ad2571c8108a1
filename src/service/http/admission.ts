// Decides when a call may start. Each method and integration has a gate with the documented rate and queue timeout.
import PQueue from "p-queue";
import type { Clock } from "../../core/runtime.ts";
import { type Method, queueTimeouts, requestLimits, type ServedVersion } from "../../wire/method.ts";
import type { LocalServiceOptions } from "../config/options.ts";
import { HttpRefusal, within } from "./messages.ts";

/** With more queued calls than this, all would time out. */
const maxQueued = 200;
/** A token lasts two hours. A public client may need two requests for one. */
const tokensPerMinute = 20;

export class CallAdmission {
  readonly #clock: Clock;
  readonly #throttle: LocalServiceOptions["throttle"];
  readonly #gates = new Map<string, RateGate>();

  constructor(clock: Clock, throttle: LocalServiceOptions["throttle"]) {
    this.#clock = clock;
    this.#throttle = throttle;
  }

  /** Resolves when the call may start. Rejects with `HttpRefusal` 429 or 504, or with `signal.reason`. */
  async admit(integration: string, method: Method, version: ServedVersion, signal: AbortSignal): Promise<void> {
    if (this.#throttle === "off") return;
    const { requestsPerSecond } = requestLimits(method, version);
    const gate = this.#gate(`${integration} ${method} ${requestsPerSecond}`, requestsPerSecond, 1_000);
    const refusal = "more calls of this method than its rate allows";
    if (this.#throttle === "reject") return gate.startOrRefuse(refusal);
    if (gate.waiting >= maxQueued) throw tooMany(refusal, queueTimeouts.queuedMs);
    const late = "the call waited 10 s for its turn; it was not run";
    await within(queueTimeouts.queuedMs, late, this.#clock, signal, (ended) => gate.start(ended));
  }

  /** Throws `HttpRefusal` 429 if the integration requests tokens too often. */
  admitToken(integration: string): void {
    if (this.#throttle === "off") return;
    this.#gate(integration, tokensPerMinute, 60_000).startOrRefuse("tokens are to be kept until they expire");
  }

  #gate(key: string, count: number, spanMs: number): RateGate {
    let gate = this.#gates.get(key);
    if (!gate) this.#gates.set(key, (gate = new RateGate(this.#clock, count, spanMs)));
    return gate;
  }
}

function tooMany(description: string, waitMs: number): HttpRefusal {
  const retryAfter = String(Math.max(1, Math.ceil(waitMs / 1_000)));
  return new HttpRefusal(429, "too_many_requests", description, { "retry-after": retryAfter });
}

/** A FIFO gate with at most `count` starts in any interval of `spanMs`. */
export class RateGate {
  readonly #clock: Clock;
  readonly #count: number;
  readonly #spanMs: number;
  /** The latest starts, at most `count`. */
  #starts: number[] = [];
  readonly #queue = new PQueue({ concurrency: 1 });

  constructor(clock: Clock, count: number, spanMs = 1_000) {
    this.#clock = clock;
    this.#count = count;
    this.#spanMs = spanMs;
  }

  /** Milliseconds until the next start is permitted, ignoring the queue. */
  #waitMs(): number {
    const oldest = this.#starts.length < this.#count ? undefined : this.#starts[0];
    return oldest === undefined ? 0 : Math.max(0, oldest + this.#spanMs - this.#clock.monotonic());
  }

  /** Starts now, or throws `HttpRefusal` 429. */
  startOrRefuse(description: string): void {
    const wait = this.#waitMs();
    if (wait > 0) throw tooMany(description, wait);
    this.#start();
  }

  get waiting(): number {
    return this.#queue.size + this.#queue.pending;
  }

  /** Resolves when the call may start. Rejects with `signal.reason` and leaves the queue. */
  async start(signal: AbortSignal): Promise<void> {
    await this.#queue.add(
      async () => {
        for (let wait = this.#waitMs(); wait > 0; wait = this.#waitMs()) await this.#clock.sleep(wait, signal);
        this.#start();
      },
      { signal },
    );
  }

  #start(): void {
    this.#starts.push(this.#clock.monotonic());
    if (this.#starts.length > this.#count) this.#starts.shift();
  }
}
