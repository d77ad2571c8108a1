// What each answer of the service leads to: settle, search, wait, try again.
import { type ErrorCode, isAgentError } from "../core/errors.ts";
import type { InputId } from "../core/point.ts";
import type { Runtime } from "../core/runtime.ts";
import type { Outcome } from "../core/sink.ts";
import { unreachable } from "../core/unreachable.ts";
import { BackOff } from "../lib/back-off.ts";
import { forEachInSlices, inSlices } from "../lib/in-slices.ts";
import type { Bisection } from "./bisection.ts";
import { Breaker } from "./breaker.ts";
import type { Catalog } from "./catalog.ts";
import type { LearnedLimit } from "./learned-limit.ts";
import type { Loader } from "./loader.ts";
import { Portion, type PortionColumn } from "./portion.ts";
import type { Rejects } from "./rejects.ts";
import type { Shipment } from "./shipment.ts";
import type { Trouble, UploadTally } from "./upload-status.ts";
import type { Window } from "./window.ts";

export interface OutcomeHandlerParts {
  readonly window: Window;
  readonly bisection: Bisection;
  readonly loader: Loader;
  readonly catalog: Catalog;
  readonly rejects: Rejects;
  readonly tally: UploadTally;
  readonly limit: LearnedLimit;
  readonly maxLagMs: number;
}

export interface Next {
  /** Before the next request, beside the spacing. */
  readonly waitMs: number;
  /** Sent, but not known to be stored: goes out again as it is. */
  readonly again: Shipment | undefined;
}

/** Points that leave the window. */
const weight = ({ count }: { readonly count: number }) => count;
const onward: Next = { waitMs: 0, again: undefined };
/** Between two tries while the service refuses whatever it is sent. */
const breakerMs = 60_000;

export class OutcomeHandler {
  readonly #parts: OutcomeHandlerParts;
  readonly #runtime: Runtime;
  readonly #breaker = new Breaker();
  readonly #backOff: BackOff;
  readonly #holdOff: BackOff;
  #troubleSince: number | undefined;

  constructor(parts: OutcomeHandlerParts, runtime: Runtime) {
    const { random } = runtime;
    this.#parts = parts;
    this.#runtime = runtime;
    this.#backOff = new BackOff({ minMs: 1_000, maxMs: 15_000, random });
    this.#holdOff = new BackOff({ minMs: 5_000, maxMs: 60_000, random });
  }

  /** Acts on the answer. */
  async handle(shipment: Shipment, outcome: Outcome): Promise<Next> {
    if (outcome.kind !== "accepted") this.#parts.tally.failed(outcome.kind);
    switch (outcome.kind) {
      case "accepted":
        for (const [input, id] of outcome.signals) this.#parts.catalog.learn(input, id);
        await this.#accepted(shipment);
        return onward;
      case "partial":
        return this.#partial(shipment, outcome);
      case "refused":
        return this.#refused(shipment, outcome);
      case "tooLarge":
        return this.#tooLarge(shipment);
      case "throttled":
        // No patience asked for: the credentials were renewed, and it goes out again in its turn.
        if (outcome.retryAfterMs > 0)
          return this.#trouble(shipment, "throttled", "the service asked to wait", outcome.retryAfterMs);
        return { waitMs: 0, again: shipment };
      case "unauthorized":
        return this.#trouble(shipment, "holding", outcome.reason, this.#holdOff.next());
      case "unavailable":
        return this.#trouble(shipment, "unreachable", outcome.cause.message, this.#backOff.next(), outcome.cause);
      default:
        return unreachable(outcome);
    }
  }

  async #accepted(shipment: Shipment): Promise<void> {
    const { points, body } = shipment.frame;
    const { window } = this.#parts;
    let lagMs: number | undefined;
    if (shipment.kind === "suspect") {
      this.#parts.bisection.accepted();
      await forEachInSlices(shipment.portion.columns, weight, (column) => window.settleExtracted(column, false));
    } else {
      await forEachInSlices(shipment.parts, weight, ({ queue, count }) => window.settle(queue, count));
      if (shipment.since !== undefined) lagMs = this.#runtime.clock.monotonic() - shipment.since;
    }
    this.#parts.tally.accepted({ points, bytes: body.length, lagMs });
    await this.#recovered(points);
  }

  /** The service answers again. What waits in the live lane is no news then: it goes back, and the newest come first. */
  async #recovered(points: number): Promise<void> {
    this.#breaker.accepted(points);
    this.#backOff.reset();
    this.#holdOff.reset();
    if (this.#parts.limit.least) this.#parts.limit.forget();
    const since = this.#troubleSince;
    this.#troubleSince = undefined;
    if (since === undefined || this.#runtime.clock.monotonic() - since <= this.#parts.maxLagMs) return;
    await inSlices(this.#parts.window.forget("live"));
    this.#parts.loader.leadWithLive();
  }

  async #partial(shipment: Shipment, outcome: Extract<Outcome, { kind: "partial" }>): Promise<Next> {
    const stored = new Set(outcome.accepted);
    const reasons = new Map(outcome.refused.map(({ input, reason }) => [input, reason]));
    if (!shipment.frame.inputs.some((input) => stored.has(input) || reasons.has(input)))
      return this.#trouble(shipment, "unreachable", "a part was accepted, but not said which", this.#backOff.next());
    if (shipment.kind === "suspect") this.#parts.bisection.accepted();
    let points = 0;
    for (const column of await this.#columnsOf(shipment, (input) => stored.has(input) || reasons.has(input))) {
      const reason = reasons.get(column.input);
      if (reason === undefined && stored.has(column.input)) {
        this.#parts.window.settleExtracted(column, false);
        points += column.count;
      } else if (reason !== undefined && column.count === 1) {
        this.#breaker.rejected(1);
        await this.#reject(column, undefined, reason);
      } else this.#parts.bisection.add(new Portion([column]), []);
    }
    if (points > 0) {
      this.#parts.tally.accepted({ points, bytes: shipment.frame.body.length, lagMs: undefined });
      await this.#recovered(points);
    }
    if (this.#breaker.open) return this.#hold("only parts of what is sent are accepted");
    return points > 0 ? onward : { waitMs: this.#backOff.next(), again: undefined };
  }

  /** Columns taken out of the window; of a suspect all, else those that `decided` names. */
  async #columnsOf(shipment: Shipment, decided: (input: InputId) => boolean): Promise<readonly PortionColumn[]> {
    if (shipment.kind === "suspect") return shipment.portion.columns;
    const columns = new Map<InputId, PortionColumn>();
    const parts = shipment.parts.filter(({ queue }) => decided(queue.input));
    await forEachInSlices(parts, weight, ({ queue, count }) => {
      const column = this.#parts.window.extract(queue, count);
      columns.set(queue.input, columns.get(queue.input)?.followedBy(column) ?? column);
    });
    return [...columns.values()];
  }

  /** Something in it is wrong: what it is gets searched for while the rest goes on. */
  async #refused(shipment: Shipment, outcome: Extract<Outcome, { kind: "refused" }>): Promise<Next> {
    const { code, reason, inputs } = outcome;
    this.#breaker.refused();
    // Nothing is given up then; the loader goes on trying suspects and others by turns, one a minute.
    if (this.#breaker.open) return this.#hold(reason);
    if (shipment.kind === "fresh")
      this.#parts.bisection.add(new Portion(await this.#columnsOf(shipment, () => true)), inputs);
    const culprit = shipment.kind === "suspect" ? this.#parts.bisection.refused(inputs) : undefined;
    for (const column of culprit?.columns ?? []) {
      this.#breaker.rejected(1);
      await this.#reject(column, code, reason);
    }
    return onward;
  }

  async #reject(column: PortionColumn, code: number | undefined, reason: string): Promise<void> {
    const { input, times, values, count } = column;
    const { rejects, tally, window } = this.#parts;
    const refused = Array.from(times, (time, i) => ({ input, time, value: values[i] ?? Number.NaN, code, reason }));
    // Not before it is written down: until then it comes again after a restart.
    await rejects.add(refused, () => {
      tally.rejected(count);
      window.settleExtracted(column, true);
    });
  }

  async #tooLarge(shipment: Shipment): Promise<Next> {
    const { frame } = shipment;
    if (frame.points <= 1 || this.#parts.limit.least)
      return this.#trouble(shipment, "holding", "even the smallest request is found too large", breakerMs);
    await this.#parts.limit.tooLarge(frame.body.length);
    if (shipment.kind === "suspect") this.#parts.bisection.split();
    return onward;
  }

  #hold(reason: string): Next {
    const message = `nearly everything is refused: ${reason}`;
    this.#parts.tally.trouble("holding", "SERVICE_REJECTED", message);
    return { waitMs: breakerMs, again: undefined };
  }

  #trouble(shipment: Shipment, state: Trouble, message: string, waitMs: number, cause?: Error): Next {
    const otherwise: ErrorCode = state === "holding" ? "SERVICE_REFUSED" : "SERVICE_UNREACHABLE";
    const code = isAgentError(cause, "SERVICE_UNTRUSTED") ? cause.code : otherwise;
    this.#troubleSince ??= this.#runtime.clock.monotonic();
    this.#parts.tally.trouble(state, code, message);
    return { waitMs, again: shipment };
  }
}
