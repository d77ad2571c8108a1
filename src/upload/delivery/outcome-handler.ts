// Handles answers of the service: decides on points, status and the time of the next request.
import { type ErrorCode, isAgentError, unreachable } from "../../core/errors.ts";
import type { Runtime } from "../../core/runtime.ts";
import type { Outcome } from "../../core/sink.ts";
import { inSlices } from "../../lib/flow/in-slices.ts";
import { BackOff } from "../../lib/flow/repeat.ts";
import { mostCuts } from "../client/rpc-client.ts";
import { Breaker } from "../failures/bisection.ts";
import { type FailureSearch, mostFailures } from "../failures/failure-search.ts";
import type { LearnedLimit } from "../failures/learned-limit.ts";
import type { Catalog } from "../signals/catalog.ts";
import type { Prefetcher } from "../window/prefetcher.ts";
import type { InFlightRequest } from "../window/sub-batch.ts";
import type { Trouble } from "./delivery-status.ts";
import type { Loader } from "./loader.ts";
import { type PointDispositionParts, pointDisposition, type Settled, unnamed } from "./point-disposition.ts";

export interface OutcomeHandlerParts extends PointDispositionParts {
  readonly search: FailureSearch;
  readonly loader: Loader;
  readonly prefetcher: Pick<Prefetcher, "endOutage">;
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
/** Requests in a row that the service answers by asking to wait, before the request itself may be the cause. */
const mostThrottled = 4;
/** Unconfirmed requests that are repeated quickly. Further ones wait longer. */
const mostUnconfirmed = 3;
/** After this many requests in a row without an accepted point, the status blames the service, not the inputs. */
const mostVain = 3;
/** Cause of a failure, with the remedy if known. */
type Cause = Error | { readonly hint?: string };
const smallestTooLarge: Cause = {
  hint: "the service, or a proxy before it, answers 413 to a single point: raise the size of requests that it takes",
};

export type OutcomeHandler = ReturnType<typeof outcomeHandler>;

export function outcomeHandler(parts: OutcomeHandlerParts, runtime: Runtime) {
  const breaker = new Breaker();
  let unconfirmed = 0;
  /** Consecutive requests without an accepted point, except retries of parked inputs. */
  let vain = 0;
  /** Consecutive requests that the service answered by asking to wait. */
  let throttled = 0;
  /** Consecutive requests that were cut off. */
  let cuts = 0;
  let troubleSince: number | undefined;
  const { random } = runtime;
  const disposition = pointDisposition(parts, breaker, runtime.log);
  // Each attempt may carry the whole request, so where few are wanted, few are repeated.
  const most = (ms: number) => Math.max(ms, parts.intervalMs);
  const backOff = new BackOff({ minMs: 1_000, maxMs: most(15_000), random });
  const holdOff = new BackOff({ minMs: 5_000, maxMs: Math.min(most(60_000), longestHoldMs), random });
  const unconfirmedOff = new BackOff({ minMs: 60_000, maxMs: 300_000, random });

  async function accepted(inFlight: InFlightRequest): Promise<void> {
    const bytes = inFlight.frame.body.length;
    const settled = await disposition.settle(inFlight);
    disposition.joinDrained();
    const since = inFlight.kind === "fresh" ? inFlight.since : undefined;
    const lagMs = since === undefined ? undefined : runtime.clock.monotonic() - since;
    await recovered(settled, bytes, lagMs);
    parts.limit.accepted(bytes);
  }

  async function recovered({ points, parts: sent }: Settled, bytes: number, lagMs: number | undefined): Promise<void> {
    parts.tally.accepted({ points, bytes, lagMs });
    parts.search.accepted(sent);
    breaker.accepted(points);
    backOff.reset();
    holdOff.reset();
    unconfirmedOff.reset();
    unconfirmed = 0;
    vain = 0;
    throttled = 0;
    cuts = 0;
    if (parts.limit.least) parts.limit.forget();
    if (parts.search.isOn) return;
    await returned();
  }

  /** −32021, or a result that names some inputs. A decision on an input applies to all of its points in the request. */
  async function partial(inFlight: InFlightRequest, outcome: Extract<Outcome, { kind: "partial" }>): Promise<Next> {
    const stored = new Set(outcome.accepted);
    const reasons = new Map(outcome.refused.map(({ input, reason }) => [input, reason]));
    if (!inFlight.frame.inputs.some((input) => stored.has(input) || reasons.has(input)))
      return trouble(inFlight, "unreachable", "a part was accepted, but not said which", backOff.next());
    const settled = await disposition.settle(inFlight, (input) => stored.has(input) && !reasons.has(input));
    await disposition.refuse(inFlight, reasons);
    await disposition.leaveOut(inFlight, (input) => stored.has(input) || reasons.has(input));
    const reason = outcome.refused[0]?.reason ?? unnamed;
    disposition.report(reason);
    if (settled.points > 0) await recovered(settled, inFlight.frame.body.length, undefined);
    if (breaker.open) return hold(`${breaker.cause}: ${reason}`);
    if (parts.parked.isFull) return hold(`the service refuses too many inputs: ${reason}`);
    if (settled.points > 0) return onward;
    if (inFlight.kind !== "probe" && ++vain >= mostVain)
      hold(`nothing of the last ${vain} requests is accepted: ${reason}`);
    return inVain(inFlight);
  }

  /** No point was accepted. A failed retry does not delay other inputs. */
  function inVain({ kind }: InFlightRequest): Next {
    return kind === "probe" ? onward : { waitMs: backOff.next(), again: undefined };
  }

  /** No point is confirmed. The request is repeated, quickly at first, then slowly. */
  function notConfirmed(inFlight: InFlightRequest): Next {
    const waitMs = ++unconfirmed <= mostUnconfirmed ? backOff.next() : unconfirmedOff.next();
    return trouble(inFlight, "holding", "a request was accepted without naming any input", waitMs);
  }

  async function refusedAll(inFlight: InFlightRequest, outcome: Extract<Outcome, { kind: "refused" }>): Promise<Next> {
    const { kind, frame } = inFlight;
    // While the cause is searched for, each new frame may contain it.
    const isKnown = kind === "fresh" ? !parts.bisection.empty : frame.inputs.every(parts.parked.isAtFault);
    if (!isKnown) breaker.refused();
    // No point is dropped. The loader continues to alternate, at one request a minute.
    if (breaker.open) {
      // The next new request carries only what is new by then, since the service may refuse older points.
      if (kind === "fresh") await inSlices(parts.window.forget("live"));
      // An accepted part shows that the service does not refuse everything.
      else if (kind === "suspect" && frame.points > 1) await disposition.search(inFlight, outcome);
      else if (kind === "probe" || frame.inputs.some(parts.parked.has)) disposition.park(inFlight, outcome.reason);
      else parts.bisection.postpone();
      parts.loader.tryLive();
      return hold(`${breaker.cause}: ${outcome.reason}`);
    }
    await disposition.search(inFlight, outcome);
    return onward;
  }

  async function tooLarge(inFlight: InFlightRequest): Promise<Next> {
    const { frame, kind } = inFlight;
    const { limit, bisection } = parts;
    if (frame.points <= 1 || (kind === "fresh" && limit.least)) {
      const message = "even the smallest request is found too large";
      const isParked = frame.points <= 1 && disposition.park(inFlight, message);
      if (isParked && ++vain < mostVain) return onward;
      const held = trouble(inFlight, "holding", message, breakerMs, smallestTooLarge);
      return isParked ? onward : held;
    }
    // A retry that is too large, although larger requests are accepted, does not lower the limit.
    const isSize = kind !== "probe" || !limit.isProven(frame.body.length);
    if (isSize && !limit.least) await limit.tooLarge(frame.body.length);
    if (kind === "suspect") bisection.split();
    if (kind === "probe") disposition.park(inFlight, "requests that carry it are found too large");
    return onward;
  }

  async function askedToWait(
    inFlight: InFlightRequest,
    { retryAfterMs, ...outcome }: Extract<Outcome, { kind: "throttled" }>,
  ): Promise<Next> {
    // Without a delay, the credentials were renewed, and the request is repeated in its turn.
    if (retryAfterMs === 0) return { waitMs: 0, again: inFlight };
    const cause = new Error("the service asked to wait");
    if (++throttled > mostThrottled)
      return unavailable(inFlight, { ...outcome, kind: "unavailable", cause }, retryAfterMs);
    return trouble(inFlight, "throttled", cause.message, retryAfterMs);
  }

  /** `retryAfterMs`: the least wait. Undefined: the service did not ask to wait. */
  async function unavailable(
    inFlight: InFlightRequest,
    outcome: Extract<Outcome, { kind: "unavailable" }>,
    retryAfterMs?: number,
  ): Promise<Next> {
    const { cause, isServerError, isCut } = outcome;
    const { parks, parked, search, bisection, window } = parts;
    const { message } = cause;
    const state = retryAfterMs === undefined ? "unreachable" : "throttled";
    const waitMs = retryAfterMs ?? backOff.next();
    // Without the input at fault, the next request may follow at once, unless the service asked all to wait.
    const parkedOne = retryAfterMs === undefined ? onward : { waitMs, again: undefined };
    // Where a proxy or a slow line ends long requests, the same one would never arrive.
    if (isCut && inFlight.kind === "fresh" && ++cuts >= mostCuts) {
      await parts.limit.tooLarge(inFlight.frame.body.length);
      trouble(inFlight, state, message, waitMs, cause);
      return { waitMs, again: undefined };
    }
    const isSearched = isServerError === true && parks;
    if (inFlight.kind === "suspect" && isSearched) {
      // Other requests were accepted recently, so the cause is in this part of a refused request.
      const isAtFault = vain < mostFailures;
      if (isAtFault && inFlight.frame.inputs.length > 1) bisection.split();
      if (isAtFault && disposition.park(inFlight, message, true)) {
        vain++;
        return parkedOne;
      }
      bisection.postpone();
    }
    const found = isSearched && inFlight.kind === "fresh" ? search.failed(inFlight.parts) : undefined;
    if (!found?.isSearched) return failedRequest(inFlight, state, message, waitMs, cause, parkedOne);
    if (found.blamed !== undefined) disposition.blame(found.blamed, message);
    // Parked inputs can be retried only after all other points of their blocks returned to the buffer.
    else if (!search.isAnswering && parked.except?.some((input) => window.isReturning(input)))
      for (const lane of ["live", "backlog"] as const) await inSlices(window.forget(lane));
    if (++vain >= mostVain) trouble(inFlight, state, message, waitMs, cause);
    return { waitMs, again: undefined };
  }

  /** Unknown whether the points are stored. A failing suspect or retry does not block other points. */
  function failedRequest(
    inFlight: InFlightRequest,
    state: Trouble,
    message: string,
    waitMs: number,
    cause?: Cause,
    parkedOne = onward,
  ): Next {
    if (inFlight.kind === "fresh") return trouble(inFlight, state, message, waitMs, cause);
    const isParked = disposition.park(inFlight, message);
    // If other requests succeed in between, the input is the cause, and others do not wait.
    if (++vain < mostVain) return isParked ? parkedOne : { waitMs, again: undefined };
    trouble(inFlight, state, message, waitMs, cause);
    return { waitMs, again: undefined };
  }

  function hold(message: string): Next {
    parts.tally.trouble("holding", "SERVICE_REJECTED", message);
    return { waitMs: breakerMs, again: undefined };
  }

  function trouble(inFlight: InFlightRequest, state: Trouble, message: string, waitMs: number, cause?: Cause): Next {
    const held = unconfirmed > 0 ? "SERVICE_UNCONFIRMED" : "SERVICE_REFUSED";
    const otherwise: ErrorCode = state === "holding" ? held : "SERVICE_UNREACHABLE";
    const code = cause instanceof Error && isAgentError(cause, "SERVICE_UNTRUSTED") ? cause.code : otherwise;
    troubleSince ??= runtime.clock.monotonic();
    const hint = cause instanceof Error && !isAgentError(cause) ? undefined : cause?.hint;
    parts.tally.trouble(state, code, message, hint);
    return { waitMs, again: inFlight };
  }

  /**
   * Call when the service is available again. After a long failure, the live points return to the buffer, so that the
   * newest points are sent first.
   */
  async function returned(): Promise<void> {
    const since = troubleSince;
    troubleSince = undefined;
    if (since === undefined || runtime.clock.monotonic() - since <= parts.maxLagMs) return;
    await inSlices(parts.window.forget("live"));
    parts.prefetcher.endOutage();
    parts.loader.leadWithLive();
  }

  return {
    returned,
    async handle(inFlight: InFlightRequest, outcome: Outcome): Promise<Next> {
      if (outcome.kind !== "accepted") parts.tally.failed(outcome.kind);
      switch (outcome.kind) {
        case "accepted":
          outcome.signals.forEach((id, input) => parts.catalog.learn(input, id));
          await accepted(inFlight);
          return onward;
        case "partial":
          return partial(inFlight, outcome);
        case "unconfirmed":
          // Earlier answers omitted these inputs but named others, so the inputs are the cause, not the service.
          if (inFlight.kind === "probe" || inFlight.frame.inputs.every((input) => parts.parked.wasLeftOut(input))) {
            await disposition.settle(inFlight, () => false);
            await disposition.leaveOut(inFlight, () => false);
            disposition.report(unnamed);
            return inVain(inFlight);
          }
          return notConfirmed(inFlight);
        case "refused":
          return refusedAll(inFlight, outcome);
        case "tooLarge":
          return tooLarge(inFlight);
        case "throttled":
          return askedToWait(inFlight, outcome);
        case "unauthorized":
          return failedRequest(inFlight, "holding", outcome.reason, holdOff.next(), outcome);
        case "unavailable":
          return unavailable(inFlight, outcome);
        default:
          return unreachable(outcome);
      }
    },
  };
}
