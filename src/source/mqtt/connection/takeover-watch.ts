// Detects that another client repeatedly takes over the session. Many MQTT 5 brokers report this with a reason code.
// MQTT 3.1.1 brokers, and mosquitto 2.0.11 with MQTT 5, close the connection without a reason, as they also do when
// they stop. After a takeover, however, the broker accepts a new connection at once.
import type { AgentError } from "../../../core/errors.ts";
import { type Attempt, explainRepeatedClosing } from "./failure.ts";

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

  /** Call if a connection could not be opened: the broker was unreachable or refused it. */
  openFailed(): void {
    this.#closings = 0;
  }

  /** Call after an established connection of `lastedMs` ended. Returns the error that explains the cause. */
  lost(error: AgentError, attempt: Attempt, { lastedMs, silent }: { lastedMs: number; silent: boolean }): AgentError {
    const isSoon = lastedMs < (this.#closings < suspicious ? soonMs : soonAfterMs);
    const isAlike = lastedMs >= soonMs && Math.abs(lastedMs - this.#lastedMs) < alikeMs;
    this.#alike = isAlike ? this.#alike + 1 : 0;
    this.#lastedMs = lastedMs;
    this.#closings = silent && isSoon && this.#alike < oftenAlike ? this.#closings + 1 : 0;
    return this.#closings < suspicious ? error : explainRepeatedClosing(attempt, this.#closings);
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
