// Keeps the log readable while something fails again and again: one line per ten seconds and message.
import type { LogFields, Runtime } from "../core/runtime.ts";

const spacingMs = 10_000;

/** For messages that are among few constants. */
export class RateLimit {
  readonly #lines = new Map<string, { nextMs: number; suppressed: number; points: number }>();

  /**
   * The fields to log, with how many lines of this message were suppressed before it; `points` is then the sum over all of
   * them. Undefined: suppress this line. `nowMs` in monotonic milliseconds.
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
