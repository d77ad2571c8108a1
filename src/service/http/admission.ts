// Decides when a call may run: one gate for each method and integration, with the documented patience.
import type { Clock } from "../../core/runtime.ts";
import { type ApiVersion, type Method, queueTimeouts, requestLimits } from "../../wire/method.ts";
import type { LocalServiceOptions } from "../config/options.ts";
import { HttpRefusal } from "./http-answer.ts";
import { RateGate } from "./rate-gate.ts";

/** More calls than this in one queue would all time out. */
const maxQueued = 200;

export class CallAdmission {
  readonly #clock: Clock;
  readonly #throttle: LocalServiceOptions["throttle"];
  readonly #gates = new Map<string, RateGate>();

  constructor(clock: Clock, throttle: LocalServiceOptions["throttle"]) {
    this.#clock = clock;
    this.#throttle = throttle;
  }

  /** Resolves when the call may start. Rejects with `HttpRefusal` 429 or 504, or with `signal.reason` when the client is gone. */
  async admit(integration: string, method: Method, version: ApiVersion, signal: AbortSignal): Promise<void> {
    if (this.#throttle === "off") return;
    const { requestsPerSecond } = requestLimits(method, version);
    const key = `${integration} ${method} ${requestsPerSecond}`;
    let gate = this.#gates.get(key);
    if (!gate) this.#gates.set(key, (gate = new RateGate(this.#clock, requestsPerSecond)));
    if (this.#throttle === "reject") {
      if (gate.tryStart()) return;
      throw tooMany(gate.waitMs());
    }
    if (gate.waiting >= maxQueued) throw tooMany(queueTimeouts.queuedMs);
    const patience = new AbortController();
    const ended = AbortSignal.any([signal, patience.signal]);
    const timer = new AbortController();
    this.#clock.sleep(queueTimeouts.queuedMs, timer.signal).then(
      () => patience.abort(new HttpRefusal(504, "timeout", "the call waited 10 s for its turn; it was not run")),
      () => {},
    );
    try {
      await gate.start(ended);
    } finally {
      timer.abort();
    }
  }
}

function tooMany(waitMs: number): HttpRefusal {
  return new HttpRefusal(429, "too_many_requests", "more calls of this method than its rate allows", {
    "retry-after": String(Math.max(1, Math.ceil(waitMs / 1_000))),
  });
}
