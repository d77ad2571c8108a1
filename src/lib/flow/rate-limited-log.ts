// Limits repeated failures to one log line per message and ten seconds.
import type { LogFields, Runtime } from "../../core/runtime.ts";

const spacingMs = 10_000;

/** Use it with a small set of constant messages, since each message is remembered. */
export class RateLimit {
  readonly #lines = new Map<string, { nextMs: number; suppressed: number; points: number }>();

  /**
   * The fields to log, with the number of suppressed lines of this message and the sum of their `points`. Undefined:
   * suppress this line. `nowMs`: monotonic milliseconds.
   */
  admit<Fields extends LogFields>(message: string, fields: Fields, nowMs: number): Fields | undefined {
    const points = typeof fields["points"] === "number" ? fields["points"] : 0;
    const line = this.#lines.get(message);
    if (line && nowMs < line.nextMs) {
      line.suppressed++;
      line.points += points;
      return undefined;
    }
    this.#lines.set(message, { nextMs: nowMs + spacingMs, suppressed: 0, points: 0 });
    if (!line?.suppressed) return fields;
    return { ...fields, suppressed: line.suppressed, ...(points > 0 && { points: points + line.points }) };
  }
}

export class RateLimitedLog {
  readonly #runtime: Runtime;
  readonly #limit = new RateLimit();

  constructor(runtime: Runtime) {
    this.#runtime = runtime;
  }

  warn(fields: LogFields, message: string): void {
    const admitted = this.#limit.admit(message, fields, this.#runtime.clock.monotonic());
    if (admitted) this.#runtime.log.warn(admitted, message);
  }
}
