// What each answer of the service leads to: settle, search, wait, try again.
import { type ErrorCode, isAgentError } from "../../core/errors.ts";
import type { InputId } from "../../core/point.ts";
import type { Runtime } from "../../core/runtime.ts";
import type { Outcome } from "../../core/sink.ts";
import { unreachable } from "../../core/unreachable.ts";
import { BackOff } from "../../lib/back-off.ts";
import { forEachInSlices, inSlices } from "../../lib/in-slices.ts";
import type { Catalog } from "../signals/catalog.ts";
import type { Bisection } from "./bisection.ts";
import { Breaker } from "./breaker.ts";
import type { LearnedLimit } from "./learned-limit.ts";
import type { Loader } from "./loader.ts";
import type { ParkedInputs, ParkedStatus } from "./parked-inputs.ts";
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
  readonly parked: ParkedInputs;
  /** Whether inputs that the service does not take wait in the buffer. False: their points are refused for good. */
  readonly parks: boolean;
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
/** Requests that may be answered without a name before they are tried slowly. */
const mostUnconfirmed = 3;
/** Requests in a row of which nothing is taken, before it is the service rather than their inputs that is shown. */
const mostVain = 3;
/** Inputs that a line of the log names. */
const mostNamed = 10;
const unnamed = "answers of the service do not name it";

type Probe = Extract<Shipment, { kind: "probe" }>;

/** A column for each input: a request names each once. */
function merged(columns: readonly PortionColumn[]): PortionColumn[] {
  const byInput = new Map<InputId, PortionColumn>();
  for (const column of columns) byInput.set(column.input, byInput.get(column.input)?.followedBy(column) ?? column);
  return [...byInput.values()];
}

const restOf = ({ rest }: Probe, input: InputId) => rest.filter((column) => column.input === input);

export class OutcomeHandler {
  readonly #parts: OutcomeHandlerParts;
  readonly #runtime: Runtime;
  readonly #breaker = new Breaker();
  readonly #backOff: BackOff;
  readonly #holdOff: BackOff;
  readonly #unconfirmedOff: BackOff;
  #unconfirmed = 0;
  /** Requests in a row of which the service took nothing, retries aside. */
  #vain = 0;
  #troubleSince: number | undefined;

  constructor(parts: OutcomeHandlerParts, runtime: Runtime) {
    const { random } = runtime;
    this.#parts = parts;
    this.#runtime = runtime;
    this.#backOff = new BackOff({ minMs: 1_000, maxMs: 15_000, random });
    this.#holdOff = new BackOff({ minMs: 5_000, maxMs: 60_000, random });
    this.#unconfirmedOff = new BackOff({ minMs: 60_000, maxMs: 300_000, random });
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
      case "unconfirmed":
        // Inputs that answers left out before, while they named others, are the matter, not the service as a whole.
        if (shipment.kind === "probe" || shipment.frame.inputs.every((input) => this.#parts.parked.wasLeftOut(input))) {
          const before = this.#parts.parked.status();
          if (shipment.kind === "suspect") this.#parts.bisection.accepted();
          await this.#leftOut(shipment, () => false);
          this.#reportParked(before, unnamed);
          return this.#inVain(shipment);
        }
        return this.#notConfirmed(shipment);
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
        return this.#failed(shipment, "holding", outcome.reason, this.#holdOff.next());
      case "unavailable":
        return this.#failed(shipment, "unreachable", outcome.cause.message, this.#backOff.next(), outcome.cause);
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
      await forEachInSlices(shipment.portion.columns, weight, (column) => this.#taken(column));
      this.#joinDrained();
    } else if (shipment.kind === "probe") {
      for (const column of shipment.portion.columns) this.#probeTaken(shipment, column);
    } else {
      await forEachInSlices(shipment.parts, weight, ({ queue, count }) => {
        window.settle(queue, count);
        this.#parts.parked.named(queue.input);
      });
      if (shipment.since !== undefined) lagMs = this.#runtime.clock.monotonic() - shipment.since;
    }
    this.#parts.tally.accepted({ points, bytes: body.length, lagMs });
    await this.#recovered(points);
    this.#parts.limit.accepted(body.length);
  }

  /** The service answers again. What waits in the live lane is no news then: it goes back, and the newest come first. */
  async #recovered(points: number): Promise<void> {
    this.#breaker.accepted(points);
    this.#backOff.reset();
    this.#holdOff.reset();
    this.#unconfirmedOff.reset();
    this.#unconfirmed = 0;
    this.#vain = 0;
    if (this.#parts.limit.least) this.#parts.limit.forget();
    const since = this.#troubleSince;
    this.#troubleSince = undefined;
    if (since === undefined || this.#runtime.clock.monotonic() - since <= this.#parts.maxLagMs) return;
    await inSlices(this.#parts.window.forget("live"));
    this.#parts.loader.leadWithLive();
  }

  /** −32021, or a result that names some inputs. What it says of an input holds for all points of it in the request. */
  async #partial(shipment: Shipment, outcome: Extract<Outcome, { kind: "partial" }>): Promise<Next> {
    const stored = new Set(outcome.accepted);
    const reasons = new Map(outcome.refused.map(({ input, reason }) => [input, reason]));
    if (!shipment.frame.inputs.some((input) => stored.has(input) || reasons.has(input)))
      return this.#trouble(shipment, "unreachable", "a part was accepted, but not said which", this.#backOff.next());
    const before = this.#parts.parked.status();
    let points = 0;
    if (shipment.kind === "fresh") {
      await forEachInSlices(shipment.parts, weight, ({ queue, count }) => {
        if (!stored.has(queue.input) || reasons.has(queue.input)) return;
        this.#parts.window.settle(queue, count);
        this.#parts.parked.named(queue.input);
        points += count;
      });
      for (const column of await this.#columnsOf(shipment, (input) => reasons.has(input)))
        await this.#refusedInput(column, reasons.get(column.input) ?? "");
    } else {
      if (shipment.kind === "suspect") this.#parts.bisection.accepted();
      for (const column of shipment.portion.columns) {
        const reason = reasons.get(column.input);
        if (reason === undefined && !stored.has(column.input)) continue;
        if (shipment.kind === "probe") this.#probeAnswered(shipment, column, reason);
        else if (reason === undefined) this.#taken(column);
        else await this.#refusedInput(column, reason);
        if (reason === undefined) points += column.count;
      }
    }
    await this.#leftOut(shipment, (input) => stored.has(input) || reasons.has(input));
    this.#joinDrained();
    this.#reportParked(before, outcome.refused[0]?.reason ?? unnamed);
    if (points > 0) {
      this.#parts.tally.accepted({ points, bytes: shipment.frame.body.length, lagMs: undefined });
      await this.#recovered(points);
    }
    const reason = outcome.refused[0]?.reason ?? unnamed;
    if (this.#breaker.open) return this.#hold(`${this.#breaker.cause}: ${reason}`);
    if (this.#parts.parked.isFull) return this.#hold(`the service refuses too many inputs: ${reason}`);
    if (points > 0) return onward;
    if (shipment.kind !== "probe" && ++this.#vain >= mostVain)
      this.#hold(`nothing of the last ${this.#vain} requests is accepted: ${reason}`);
    return this.#inVain(shipment);
  }

  /** Nothing of it was taken. A retry says nothing of other inputs, and each of its own waits for its next turn. */
  #inVain({ kind }: Shipment): Next {
    return kind === "probe" ? onward : { waitMs: this.#backOff.next(), again: undefined };
  }

  /** The service refuses the input; or single points of it, where it took others since it refused the input. */
  async #refusedInput(column: PortionColumn, reason: string): Promise<void> {
    const { parked, parks, window, bisection } = this.#parts;
    const { input } = column;
    if (!parks || (column.count === 1 && parked.isProven(input))) {
      this.#breaker.rejected(column.count);
      parked.rejected(input);
      await this.#reject(column, undefined, reason);
    } else if (parked.isProven(input)) {
      // Later points of it wait, so that they are not stored before these.
      window.forgetInput(input);
      parked.drain(input, reason);
      bisection.add(new Portion([column]), []);
    } else if (parked.isFull && !parked.has(input)) bisection.resend([column]);
    else {
      this.#forget(input, [column]);
      parked.park(input, "refused", reason);
    }
  }

  /** All points of the input go back to the buffer: one that was sent alone could arrive before an older one. */
  #forget(input: InputId, columns: readonly PortionColumn[]): void {
    const { window, bisection } = this.#parts;
    for (const column of [...columns, ...bisection.withdraw(input)]) window.forgetExtracted(column);
    window.forgetInput(input);
  }

  /** Inputs that the answer does not name are sent again, and parked when that has happened too often. */
  async #leftOut(shipment: Shipment, decided: (input: InputId) => boolean): Promise<void> {
    const { parked, parks, bisection } = this.#parts;
    const again: PortionColumn[] = [];
    for (const input of new Set(shipment.frame.inputs)) {
      if (decided(input)) continue;
      const columns = shipment.kind === "fresh" ? [] : shipment.portion.columns.filter((each) => each.input === input);
      if (shipment.kind === "probe") for (const column of columns) this.#probeAnswered(shipment, column, unnamed);
      else if (!parked.leftOut(input) || (parked.isFull && !parked.has(input))) again.push(...columns);
      else if (parks) {
        this.#forget(input, columns);
        parked.park(input, "unconfirmed", unnamed);
      } else
        for (const column of shipment.kind === "fresh"
          ? await this.#columnsOf(shipment, (each) => each === input)
          : columns)
          await this.#reject(column, undefined, unnamed);
    }
    bisection.resend(again);
  }

  #taken(column: PortionColumn): void {
    this.#parts.window.settleExtracted(column, false);
    this.#parts.parked.named(column.input);
  }

  /** Undefined `reason`: the service has the points. */
  #probeAnswered(shipment: Probe, column: PortionColumn, reason: string | undefined): void {
    if (reason === undefined) {
      this.#probeTaken(shipment, column);
      return;
    }
    const { window, parked } = this.#parts;
    for (const each of [column, ...restOf(shipment, column.input)]) window.forgetExtracted(each);
    parked.triedInVain(column.input, reason);
  }

  #probeTaken(shipment: Probe, column: PortionColumn): void {
    const { parked, bisection } = this.#parts;
    this.#taken(column);
    const rest = merged(restOf(shipment, column.input));
    if (rest.length === 0) {
      parked.join(column.input);
      return;
    }
    // A single point was taken. What else was taken from the buffer goes out before later points of the input.
    parked.drain(column.input, "");
    bisection.resend(rest);
  }

  #joinDrained(): void {
    const { parked, bisection } = this.#parts;
    for (const input of parked.draining()) if (!bisection.holds(input)) parked.join(input);
  }

  #reportParked(before: ParkedStatus, reason: string): void {
    const now = this.#parts.parked.status();
    const count = now.refused + now.unconfirmed - before.refused - before.unconfirmed;
    if (count <= 0) return;
    const inputs = this.#parts.parked.except?.slice(-count).slice(0, mostNamed);
    this.#runtime.log.warn(
      { inputs, count, reason },
      "the service does not take some inputs; their points stay in the buffer and are tried again",
    );
  }

  /** Nothing says that anything is stored: the same request again, soon a few times, then slowly. */
  #notConfirmed(shipment: Shipment): Next {
    const waitMs = ++this.#unconfirmed <= mostUnconfirmed ? this.#backOff.next() : this.#unconfirmedOff.next();
    return this.#trouble(shipment, "holding", "a request was accepted without naming any input", waitMs);
  }

  /** Columns taken out of the window; of a suspect or a probe all, else those that `decided` names. */
  async #columnsOf(shipment: Shipment, decided: (input: InputId) => boolean): Promise<readonly PortionColumn[]> {
    if (shipment.kind !== "fresh") return shipment.portion.columns;
    const columns: PortionColumn[] = [];
    const parts = shipment.parts.filter(({ queue }) => decided(queue.input));
    await forEachInSlices(parts, weight, ({ queue, count }) => {
      columns.push(this.#parts.window.extract(queue, count));
    });
    return merged(columns);
  }

  /** Something in it is wrong: what it is gets searched for while the rest goes on. */
  async #refused(shipment: Shipment, outcome: Extract<Outcome, { kind: "refused" }>): Promise<Next> {
    const { code, reason, inputs } = outcome;
    this.#breaker.refused();
    // Nothing is given up then; the loader goes on trying suspects and others by turns, one a minute.
    if (this.#breaker.open) {
      if (shipment.kind === "probe") this.#setAside(shipment, reason);
      return this.#hold(`${this.#breaker.cause}: ${reason}`);
    }
    if (shipment.kind === "fresh")
      this.#parts.bisection.add(new Portion(await this.#columnsOf(shipment, () => true)), inputs);
    if (shipment.kind === "probe") {
      // It is not refused as input any more: what is wrong with its points is found as with those of others.
      for (const { input } of shipment.portion.columns) this.#parts.parked.drain(input, reason);
      // The rest follows what was sent: it may hold later points of the same time.
      this.#parts.bisection.resend(merged(shipment.rest));
      this.#parts.bisection.add(new Portion([...shipment.portion.columns]), inputs);
    }
    const culprit = shipment.kind === "suspect" ? this.#parts.bisection.refused(inputs) : undefined;
    for (const column of culprit?.columns ?? []) {
      this.#breaker.rejected(1);
      await this.#reject(column, code, reason);
    }
    this.#joinDrained();
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
    const { frame, kind } = shipment;
    const { limit, bisection } = this.#parts;
    if (frame.points <= 1 || (kind === "fresh" && limit.least)) {
      const message = "even the smallest request is found too large";
      const isAside = frame.points <= 1 && this.#setAside(shipment, message);
      if (isAside && ++this.#vain < mostVain) return onward;
      const held = this.#trouble(shipment, "holding", message, breakerMs);
      return isAside ? onward : held;
    }
    // A retry that is too large where larger requests are accepted says nothing of the size of others.
    const isSize = kind !== "probe" || !limit.isProven(frame.body.length);
    if (isSize && !limit.least) await limit.tooLarge(frame.body.length);
    if (kind === "suspect") bisection.split();
    if (kind === "probe") this.#setAside(shipment, "requests that carry it are found too large");
    return onward;
  }

  /** Not known to be stored. What was sent apart from the others does not hold them up, however often it fails. */
  #failed(shipment: Shipment, state: Trouble, message: string, waitMs: number, cause?: Error): Next {
    if (shipment.kind === "fresh") return this.#trouble(shipment, state, message, waitMs, cause);
    const isAside = this.#setAside(shipment, message);
    // Where others are accepted in between, it is the input and not the service: they do not wait for it.
    if (++this.#vain < mostVain) return isAside ? onward : { waitMs, again: undefined };
    this.#trouble(shipment, state, message, waitMs, cause);
    return { waitMs, again: undefined };
  }

  /** Parks the inputs of a retry, or that of a single point. False: the points stay where they are. */
  #setAside(shipment: Shipment, reason: string): boolean {
    const { parked, parks } = this.#parts;
    if (shipment.kind === "probe") {
      for (const column of shipment.portion.columns) this.#probeAnswered(shipment, column, reason);
      return true;
    }
    const { points, inputs } = shipment.frame;
    const [input] = inputs;
    if (input === undefined || inputs.length > 1 || !parks) return false;
    // What follows a point of a parked input is a part of its retry.
    const isRetry = parked.has(input);
    if (!isRetry && (points > 1 || parked.isFull)) return false;
    this.#forget(input, []);
    parked.park(input, "refused", reason);
    if (isRetry) parked.triedInVain(input, reason);
    return true;
  }

  #hold(message: string): Next {
    this.#parts.tally.trouble("holding", "SERVICE_REJECTED", message);
    return { waitMs: breakerMs, again: undefined };
  }

  #trouble(shipment: Shipment, state: Trouble, message: string, waitMs: number, cause?: Error): Next {
    const held = this.#unconfirmed > 0 ? "SERVICE_UNCONFIRMED" : "SERVICE_REFUSED";
    const otherwise: ErrorCode = state === "holding" ? held : "SERVICE_UNREACHABLE";
    const code = isAgentError(cause, "SERVICE_UNTRUSTED") ? cause.code : otherwise;
    this.#troubleSince ??= this.#runtime.clock.monotonic();
    this.#parts.tally.trouble(state, code, message);
    return { waitMs, again: shipment };
  }
}
