// Handles answers of the service: decides on points, status and the time of the next request.
import { type ErrorCode, isAgentError } from "../../core/errors.ts";
import type { Runtime } from "../../core/runtime.ts";
import type { Outcome } from "../../core/sink.ts";
import { unreachable } from "../../core/unreachable.ts";
import { BackOff } from "../../lib/flow/back-off.ts";
import { inSlices } from "../../lib/flow/in-slices.ts";
import { Breaker } from "../failures/breaker.ts";
import { type FailureSearch, mostFailures } from "../failures/failure-search.ts";
import type { LearnedLimit } from "../failures/learned-limit.ts";
import type { Catalog } from "../signals/catalog.ts";
import type { InFlightRequest } from "../window/sub-batch.ts";
import type { Trouble } from "./delivery-status.ts";
import type { Loader } from "./loader.ts";
import { PointDisposition, type PointDispositionParts, type Settled, unnamed } from "./point-disposition.ts";

export interface OutcomeHandlerParts extends PointDispositionParts {
  readonly search: FailureSearch;
  readonly loader: Loader;
  readonly catalog: Catalog;
  readonly limit: LearnedLimit;
  readonly maxLagMs: number;
  /** Time between requests while one carries everything. Up to `leastIntervalMs`, the pacer alone decides. */
  readonly intervalMs: number;
}

export interface Next {
  /** Milliseconds before the next request, in addition to the spacing. */
  readonly waitMs: number;
  /** A request to repeat unchanged, since it is unknown whether its points are stored. */
  readonly again: InFlightRequest | undefined;
}

const onward: Next = { waitMs: 0, again: undefined };
/** Longest wait for corrected credentials, which a person watches. */
const longestHoldMs = 300_000;
/** Pause between attempts while the service refuses every request. */
const breakerMs = 60_000;
/** Unconfirmed requests that are repeated quickly. Further ones wait longer. */
const mostUnconfirmed = 3;
/** After this many requests in a row without an accepted point, the status blames the service, not the inputs. */
const mostVain = 3;
/** Cause of a failure, with the remedy if known. */
type Cause = Error | { readonly hint?: string };
const smallestTooLarge: Cause = {
  hint: "the service, or a proxy before it, answers 413 to a single point: raise the size of requests that it takes",
};

export class OutcomeHandler {
  readonly #parts: OutcomeHandlerParts;
  readonly #runtime: Runtime;
  readonly #points: PointDisposition;
  readonly #breaker = new Breaker();
  readonly #backOff: BackOff;
  readonly #holdOff: BackOff;
  readonly #unconfirmedOff: BackOff;
  #unconfirmed = 0;
  /** Consecutive requests without an accepted point, except retries of parked inputs. */
  #vain = 0;
  #troubleSince: number | undefined;

  constructor(parts: OutcomeHandlerParts, runtime: Runtime) {
    const { random } = runtime;
    this.#parts = parts;
    this.#runtime = runtime;
    this.#points = new PointDisposition(parts, this.#breaker, runtime.log);
    // Each attempt may carry the whole request, so where few are wanted, few are repeated.
    const most = (ms: number) => Math.max(ms, parts.intervalMs);
    this.#backOff = new BackOff({ minMs: 1_000, maxMs: most(15_000), random });
    this.#holdOff = new BackOff({ minMs: 5_000, maxMs: Math.min(most(60_000), longestHoldMs), random });
    this.#unconfirmedOff = new BackOff({ minMs: 60_000, maxMs: 300_000, random });
  }

  async handle(inFlight: InFlightRequest, outcome: Outcome): Promise<Next> {
    if (outcome.kind !== "accepted") this.#parts.tally.failed(outcome.kind);
    switch (outcome.kind) {
      case "accepted":
        outcome.signals.forEach((id, input) => this.#parts.catalog.learn(input, id));
        await this.#accepted(inFlight);
        return onward;
      case "partial":
        return this.#partial(inFlight, outcome);
      case "unconfirmed":
        // Earlier answers omitted these inputs but named others, so the inputs are the cause, not the service.
        if (inFlight.kind === "probe" || inFlight.frame.inputs.every((input) => this.#parts.parked.wasLeftOut(input))) {
          await this.#points.settle(inFlight, () => false);
          await this.#points.leaveOut(inFlight, () => false);
          this.#points.report(unnamed);
          return this.#inVain(inFlight);
        }
        return this.#notConfirmed(inFlight);
      case "refused":
        return this.#refused(inFlight, outcome);
      case "tooLarge":
        return this.#tooLarge(inFlight);
      case "throttled":
        // Without a delay, the credentials were renewed, and the request is repeated in its turn.
        if (outcome.retryAfterMs > 0)
          return this.#trouble(inFlight, "throttled", "the service asked to wait", outcome.retryAfterMs);
        return { waitMs: 0, again: inFlight };
      case "unauthorized":
        return this.#failed(inFlight, "holding", outcome.reason, this.#holdOff.next(), outcome);
      case "unavailable":
        return this.#unavailable(inFlight, outcome);
      default:
        return unreachable(outcome);
    }
  }

  async #accepted(inFlight: InFlightRequest): Promise<void> {
    const bytes = inFlight.frame.body.length;
    const settled = await this.#points.settle(inFlight);
    this.#points.joinDrained();
    const since = inFlight.kind === "fresh" ? inFlight.since : undefined;
    const lagMs = since === undefined ? undefined : this.#runtime.clock.monotonic() - since;
    await this.#recovered(settled, bytes, lagMs);
    this.#parts.limit.accepted(bytes);
  }

  async #recovered({ points, parts }: Settled, bytes: number, lagMs: number | undefined): Promise<void> {
    this.#parts.tally.accepted({ points, bytes, lagMs });
    this.#parts.search.accepted(parts);
    this.#breaker.accepted(points);
    this.#backOff.reset();
    this.#holdOff.reset();
    this.#unconfirmedOff.reset();
    this.#unconfirmed = 0;
    this.#vain = 0;
    if (this.#parts.limit.least) this.#parts.limit.forget();
    if (this.#parts.search.isOn) return;
    await this.returned();
  }

  /**
   * Call when the service is available again. After a long failure, the live points return to the buffer, so that the
   * newest points are sent first.
   */
  async returned(): Promise<void> {
    const since = this.#troubleSince;
    this.#troubleSince = undefined;
    if (since === undefined || this.#runtime.clock.monotonic() - since <= this.#parts.maxLagMs) return;
    await inSlices(this.#parts.window.forget("live"));
    this.#parts.loader.leadWithLive();
  }

  /** −32021, or a result that names some inputs. A decision on an input applies to all of its points in the request. */
  async #partial(inFlight: InFlightRequest, outcome: Extract<Outcome, { kind: "partial" }>): Promise<Next> {
    const stored = new Set(outcome.accepted);
    const reasons = new Map(outcome.refused.map(({ input, reason }) => [input, reason]));
    if (!inFlight.frame.inputs.some((input) => stored.has(input) || reasons.has(input)))
      return this.#trouble(inFlight, "unreachable", "a part was accepted, but not said which", this.#backOff.next());
    const settled = await this.#points.settle(inFlight, (input) => stored.has(input) && !reasons.has(input));
    await this.#points.refuse(inFlight, reasons);
    await this.#points.leaveOut(inFlight, (input) => stored.has(input) || reasons.has(input));
    const reason = outcome.refused[0]?.reason ?? unnamed;
    this.#points.report(reason);
    if (settled.points > 0) await this.#recovered(settled, inFlight.frame.body.length, undefined);
    if (this.#breaker.open) return this.#hold(`${this.#breaker.cause}: ${reason}`);
    if (this.#parts.parked.isFull) return this.#hold(`the service refuses too many inputs: ${reason}`);
    if (settled.points > 0) return onward;
    if (inFlight.kind !== "probe" && ++this.#vain >= mostVain)
      this.#hold(`nothing of the last ${this.#vain} requests is accepted: ${reason}`);
    return this.#inVain(inFlight);
  }

  /** No point was accepted. A failed retry does not delay other inputs. */
  #inVain({ kind }: InFlightRequest): Next {
    return kind === "probe" ? onward : { waitMs: this.#backOff.next(), again: undefined };
  }

  /** No point is confirmed. The request is repeated, quickly at first, then slowly. */
  #notConfirmed(inFlight: InFlightRequest): Next {
    const waitMs = ++this.#unconfirmed <= mostUnconfirmed ? this.#backOff.next() : this.#unconfirmedOff.next();
    return this.#trouble(inFlight, "holding", "a request was accepted without naming any input", waitMs);
  }

  async #refused(inFlight: InFlightRequest, outcome: Extract<Outcome, { kind: "refused" }>): Promise<Next> {
    this.#breaker.refused();
    // No point is dropped. The loader continues to alternate, at one request a minute.
    if (this.#breaker.open) {
      if (inFlight.kind === "probe") this.#points.setAside(inFlight, outcome.reason);
      return this.#hold(`${this.#breaker.cause}: ${outcome.reason}`);
    }
    await this.#points.search(inFlight, outcome);
    return onward;
  }

  async #tooLarge(inFlight: InFlightRequest): Promise<Next> {
    const { frame, kind } = inFlight;
    const { limit, bisection } = this.#parts;
    if (frame.points <= 1 || (kind === "fresh" && limit.least)) {
      const message = "even the smallest request is found too large";
      const isAside = frame.points <= 1 && this.#points.setAside(inFlight, message);
      if (isAside && ++this.#vain < mostVain) return onward;
      const held = this.#trouble(inFlight, "holding", message, breakerMs, smallestTooLarge);
      return isAside ? onward : held;
    }
    // A retry that is too large, although larger requests are accepted, does not lower the limit.
    const isSize = kind !== "probe" || !limit.isProven(frame.body.length);
    if (isSize && !limit.least) await limit.tooLarge(frame.body.length);
    if (kind === "suspect") bisection.split();
    if (kind === "probe") this.#points.setAside(inFlight, "requests that carry it are found too large");
    return onward;
  }

  async #unavailable(inFlight: InFlightRequest, outcome: Extract<Outcome, { kind: "unavailable" }>): Promise<Next> {
    const { cause, isServerError } = outcome;
    const { parks, parked, search, bisection, window } = this.#parts;
    const { message } = cause;
    const waitMs = this.#backOff.next();
    const isSearched = isServerError === true && parks;
    if (inFlight.kind === "suspect" && isSearched) {
      // Other requests were accepted recently, so the cause is in this part of a refused request.
      const isAtFault = this.#vain < mostFailures;
      if (isAtFault && inFlight.frame.inputs.length > 1) bisection.split();
      if (isAtFault && this.#points.setAside(inFlight, message, true)) {
        this.#vain++;
        return onward;
      }
      bisection.postpone();
    }
    const found = isSearched && inFlight.kind === "fresh" ? search.failed(inFlight.parts) : undefined;
    if (!found?.isSearched) return this.#failed(inFlight, "unreachable", message, waitMs, cause);
    if (found.blamed !== undefined) this.#points.blame(found.blamed, message);
    // Parked inputs can be retried only after all other points of their blocks returned to the buffer.
    else if (!search.isAnswering && parked.except?.some((input) => window.isReturning(input)))
      for (const lane of ["live", "backlog"] as const) await inSlices(window.forget(lane));
    if (++this.#vain >= mostVain) this.#trouble(inFlight, "unreachable", message, waitMs, cause);
    return { waitMs, again: undefined };
  }

  /** Unknown whether the points are stored. A failing suspect or retry does not block other points. */
  #failed(inFlight: InFlightRequest, state: Trouble, message: string, waitMs: number, cause?: Cause): Next {
    if (inFlight.kind === "fresh") return this.#trouble(inFlight, state, message, waitMs, cause);
    const isAside = this.#points.setAside(inFlight, message);
    // If other requests succeed in between, the input is the cause, and others do not wait.
    if (++this.#vain < mostVain) return isAside ? onward : { waitMs, again: undefined };
    this.#trouble(inFlight, state, message, waitMs, cause);
    return { waitMs, again: undefined };
  }

  #hold(message: string): Next {
    this.#parts.tally.trouble("holding", "SERVICE_REJECTED", message);
    return { waitMs: breakerMs, again: undefined };
  }

  #trouble(inFlight: InFlightRequest, state: Trouble, message: string, waitMs: number, cause?: Cause): Next {
    const held = this.#unconfirmed > 0 ? "SERVICE_UNCONFIRMED" : "SERVICE_REFUSED";
    const otherwise: ErrorCode = state === "holding" ? held : "SERVICE_UNREACHABLE";
    const code = cause instanceof Error && isAgentError(cause, "SERVICE_UNTRUSTED") ? cause.code : otherwise;
    this.#troubleSince ??= this.#runtime.clock.monotonic();
    const hint = cause instanceof Error && !isAgentError(cause) ? undefined : cause?.hint;
    this.#parts.tally.trouble(state, code, message, hint);
    return { waitMs, again: inFlight };
  }
}
