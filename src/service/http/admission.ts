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

export type CallAdmission = ReturnType<typeof callAdmission>;

export function callAdmission(clock: Clock, throttle: LocalServiceOptions["throttle"]) {
  const gates = new Map<string, ReturnType<typeof rateGate>>();
  function gateOf(key: string, count: number, spanMs: number) {
    let gate = gates.get(key);
    if (!gate) gates.set(key, (gate = rateGate(clock, count, spanMs)));
    return gate;
  }
  return {
    /** Resolves when the call may start. Rejects with `HttpRefusal` 429 or 504, or with `signal.reason`. */
    async admit(integration: string, method: Method, version: ServedVersion, signal: AbortSignal): Promise<void> {
      if (throttle === "off") return;
      const { requestsPerSecond } = requestLimits(method, version);
      const gate = gateOf(`${integration} ${method} ${requestsPerSecond}`, requestsPerSecond, 1_000);
      const refusal = "more calls of this method than its rate allows";
      if (throttle === "reject") return gate.startOrRefuse(refusal);
      if (gate.waiting() >= maxQueued) throw tooMany(refusal, queueTimeouts.queuedMs);
      const late = "the call waited 10 s for its turn; it was not run";
      await within(queueTimeouts.queuedMs, late, clock, signal, (ended) => gate.start(ended));
    },
    /** Throws `HttpRefusal` 429 if the integration requests tokens too often. */
    admitToken(integration: string): void {
      if (throttle === "off") return;
      gateOf(integration, tokensPerMinute, 60_000).startOrRefuse("tokens are to be kept until they expire");
    },
  };
}

function tooMany(description: string, waitMs: number): HttpRefusal {
  const retryAfter = String(Math.max(1, Math.ceil(waitMs / 1_000)));
  return new HttpRefusal(429, "too_many_requests", description, { "retry-after": retryAfter });
}

/** A FIFO gate with at most `count` starts in any interval of `spanMs`. */
export function rateGate(clock: Clock, count: number, spanMs = 1_000) {
  /** The latest starts, at most `count`. */
  const starts: number[] = [];
  const queue = new PQueue({ concurrency: 1 });
  /** Milliseconds until the next start is permitted, ignoring the queue. */
  function waitMs(): number {
    const oldest = starts.length < count ? undefined : starts[0];
    return oldest === undefined ? 0 : Math.max(0, oldest + spanMs - clock.monotonic());
  }
  function begin(): void {
    starts.push(clock.monotonic());
    if (starts.length > count) starts.shift();
  }
  return {
    /** Starts now, or throws `HttpRefusal` 429. */
    startOrRefuse(description: string): void {
      const wait = waitMs();
      if (wait > 0) throw tooMany(description, wait);
      begin();
    },
    waiting: () => queue.size + queue.pending,
    /** Resolves when the call may start. Rejects with `signal.reason` and leaves the queue. */
    async start(signal: AbortSignal): Promise<void> {
      const turn = async () => {
        for (let wait = waitMs(); wait > 0; wait = waitMs()) await clock.sleep(wait, signal);
        begin();
      };
      await queue.add(turn, { signal });
    },
  };
}
