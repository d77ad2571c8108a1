// Warnings that may come in thousands: one line per ten seconds and message, with how many there were.
import type { LogFields, Runtime } from "../core/runtime.ts";

const spacingMs = 10_000;

export class RateLimitedLog {
  readonly #runtime: Runtime;
  readonly #lines = new Map<string, { nextMs: number; suppressed: number }>();

  constructor(runtime: Runtime) {
    this.#runtime = runtime;
  }

  /** `message` is one of few constants. */
  warn(fields: LogFields, message: string): void {
    const nowMs = this.#runtime.clock.monotonic();
    const line = this.#lines.get(message) ?? { nextMs: nowMs, suppressed: 0 };
    this.#lines.set(message, line);
    if (nowMs < line.nextMs) {
      line.suppressed++;
      return;
    }
    this.#runtime.log.warn(line.suppressed > 0 ? { ...fields, suppressed: line.suppressed } : fields, message);
    line.nextMs = nowMs + spacingMs;
    line.suppressed = 0;
  }
}
