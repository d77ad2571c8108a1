// Recognises that another client takes over the session again and again. Many brokers of MQTT 5 say so with a reason code. Those of
// MQTT 3.1.1, and mosquitto 2.0.11 with MQTT 5, close the connection without a word, as they also do when they stop. The
// difference: after a takeover the broker accepts us again at once.
import type { AgentError } from "../../../core/errors.ts";
import { type Attempt, explainRepeatedClosing } from "./failure.ts";

/** A connection that the broker closes within this time of accepting it is suspicious, in milliseconds: the longest pause of the other client, if that is an agent, too. */
const soonMs = 30_000;
/** The same once it is called a takeover: then both wait longer (`TakeoverPause`). */
const soonAfterMs = 120_000;
/** Suspicious connections in a row before it is called a takeover. A network that is cut looks the same a few times. */
const suspicious = 5;
/**
 * A proxy that cuts every 60 s looks like another agent that waits 60 s, but for its precision: pauses of agents differ by up to a
 * fifth (`TakeoverPause`). Connections longer than `soonMs` that lasted alike, within so many milliseconds, so often in a row.
 */
const alikeMs = 500;
const oftenAlike = 4;

/** Of one source, over its connections. */
export class TakeoverWatch {
  #closings = 0;
  #lastedMs = 0;
  #alike = 0;

  /** A connection could not be opened: the broker was not there, or it refused. */
  openFailed(): void {
    this.#closings = 0;
  }

  /** A connection that was good for `lastedMs` has ended. Gives the error that names the cause. */
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

/** The watch of the source that has this configuration: the same object for all of its connections. */
export function takeoverWatchOf(config: object): TakeoverWatch {
  const known = watches.get(config);
  if (known) return known;
  const made = new TakeoverWatch();
  watches.set(config, made);
  return made;
}
