// Detects that another client repeatedly takes over the session. Many MQTT 5 brokers report this with a reason code.
// MQTT 3.1.1 brokers, and mosquitto 2.0.11 with MQTT 5, close the connection without a reason, as they also do when
// they stop. After a takeover, however, the broker accepts a new connection at once.
//
// Where the broker ends a connection depends on the load: before it answers the subscriptions, or while it has not read
// what we sent. In the second case the kernel resets the connection, and a reason sent before may be lost.
import type { AgentError } from "../../../core/errors.ts";
import type { Clock } from "../../../core/runtime.ts";
import { type Attempt, type ConnectionLoss, explainRepeatedClosing } from "./failure.ts";

/** Connections closed within this time are suspicious, in milliseconds: the longest pause of another agent. */
const soonMs = 30_000;
/** As `soonMs`, once a takeover is detected. Both clients then wait longer (`TakeoverPause`). */
const soonAfterMs = 120_000;
/** Suspicious connections in a row that count as a takeover. A few may also come from an unreliable network. */
const suspicious = 5;
/**
 * A proxy that disconnects every 60 s resembles another agent that waits 60 s, except for its precision. Pauses of
 * agents vary by up to a fifth (`TakeoverPause`). `oftenAlike` connections in a row, each longer than `soonMs` and
 * equally long within `alikeMs`, indicate a proxy.
 */
const alikeMs = 500;
const oftenAlike = 4;

/** Observes the successive connections of one source. */
export class TakeoverWatch {
  #closings = 0;
  #lastedMs = 0;
  #alike = 0;
  #last: AgentError | undefined;

  /** Call if no broker could be used, with the reasons. One of them may be a loss that `lost` has counted. */
  openFailed(failures: readonly AgentError[]): void {
    if (!this.#last || !failures.includes(this.#last)) this.#closings = 0;
  }

  /** Call when a connection is established. Call the result when it is lost; it returns the error with the cause. */
  established(attempt: Attempt, clock: Pick<Clock, "monotonic">): (loss: ConnectionLoss) => AgentError {
    const since = clock.monotonic();
    return ({ error, silent }) => this.lost(error, attempt, { lastedMs: clock.monotonic() - since, silent });
  }

  /** Call after an established connection of `lastedMs` ended. Returns the error that explains the cause. */
  lost(error: AgentError, attempt: Attempt, { lastedMs, silent }: { lastedMs: number; silent: boolean }): AgentError {
    this.#last = this.#judge(error, attempt, lastedMs, silent);
    return this.#last;
  }

  #judge(error: AgentError, attempt: Attempt, lastedMs: number, silent: boolean): AgentError {
    if (error.code === "SOURCE_TAKEN_OVER") {
      this.#closings = suspicious;
      return error;
    }
    const isSoon = lastedMs < (this.#closings < suspicious ? soonMs : soonAfterMs);
    const isAlike = lastedMs >= soonMs && Math.abs(lastedMs - this.#lastedMs) < alikeMs;
    this.#alike = isAlike ? this.#alike + 1 : 0;
    this.#lastedMs = lastedMs;
    this.#closings = silent && isSoon && this.#alike < oftenAlike ? this.#closings + 1 : 0;
    return this.#closings < suspicious ? error : explainRepeatedClosing(attempt);
  }
}

const watches = new WeakMap<object, TakeoverWatch>();

/** The watch of a source, shared by all its connections. `config` identifies the source. */
export function takeoverWatchOf(config: object): TakeoverWatch {
  const known = watches.get(config);
  if (known) return known;
  const made = new TakeoverWatch();
  watches.set(config, made);
  return made;
}
