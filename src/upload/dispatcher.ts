// The loop of the uploader: take, pack, admit, send, decide, settle.
import type { BufferReader, Lane } from "../core/buffer.ts";
import type { ErrorCode } from "../core/errors.ts";
import type { InputId } from "../core/point.ts";
import type { Runtime } from "../core/runtime.ts";
import type { Outcome, Sink } from "../core/sink.ts";
import { unreachable } from "../core/unreachable.ts";
import { BackOff } from "../lib/back-off.ts";
import { Bisection } from "./bisection.ts";
import { Breaker } from "./breaker.ts";
import type { Catalog } from "./catalog.ts";
import { Intake } from "./intake.ts";
import { Loader } from "./loader.ts";
import type { Pacer } from "./pacer.ts";
import { Portion, type PortionColumn } from "./portion.ts";
import type { Rejects } from "./rejects.ts";
import type { Shipment } from "./shipment.ts";
import type { Trouble, UploadTally } from "./upload-status.ts";
import { Window } from "./window.ts";

export interface DispatcherParts {
  readonly reader: BufferReader;
  readonly catalog: Catalog;
  readonly rejects: Rejects;
  readonly tally: UploadTally;
  readonly sink: Sink;
  readonly pacer: Pacer;
  readonly maxBytes: number;
  readonly integration: string;
  readonly maxLagMs: number;
  /** Whether the points of an input have to wait for its metadata. */
  readonly holds: (input: InputId) => boolean;
}

/**
 * How much the window holds, in points per byte of the largest frame. A point in a dense frame takes about 5 bytes: then
 * somewhat more than one frame is enough. Of series that share no times a frame carries the more the deeper they are.
 */
const windowShare = { live: 1 / 14, dense: 1 / 4.6, sparse: 1 / 2.3 } as const;
/**
 * The live lane takes what a few requests carry, so that the newest are not queued behind what is no news: more than that
 * stays in the buffer and follows as backlog.
 */
const liveFrames = 4;
/** Bytes of the largest frame for each point that is taken before it is known what a frame carries. */
const bytesPerLive = 1_700;
/** The next frame is built this long before it may go, so that it carries what came until then. */
const buildAheadMs = 60;
/** How long to wait while all there is waits for its metadata. */
const heldMs = 100;
/** Between two tries while the service refuses whatever it is sent. */
const breakerMs = 60_000;

export class Dispatcher {
  readonly #parts: DispatcherParts;
  readonly #runtime: Runtime;
  readonly #window: Window;
  readonly #intake: Intake;
  readonly #loader: Loader;
  readonly #bisection = new Bisection();
  readonly #breaker = new Breaker();
  readonly #backOff: BackOff;
  readonly #holdOff: BackOff;
  /** Sent, but not known to be stored: goes out again as it is. */
  #again: Shipment | undefined;
  #troubleSince: number | undefined;

  constructor(parts: DispatcherParts, runtime: Runtime) {
    const { reader, maxBytes, integration, maxLagMs, holds } = parts;
    const { clock, random } = runtime;
    this.#parts = parts;
    this.#runtime = runtime;
    const window = new Window(Math.ceil(maxBytes * (windowShare.live + windowShare.sparse)));
    this.#window = window;
    const mostPoints = (lane: Lane) => {
      if (lane === "backlog") return Math.ceil(maxBytes * windowShare[this.#loader.sparse ? "sparse" : "dense"]);
      const soon = Math.max(maxBytes / bytesPerLive, this.#loader.livePoints * liveFrames);
      return Math.ceil(Math.min(maxBytes * windowShare.live, soon));
    };
    this.#intake = new Intake({ reader, window, clock, newsMs: maxLagMs * 2, mostPoints });
    this.#loader = new Loader({ window, bisection: this.#bisection, clock, integration, maxBytes, maxLagMs, holds });
    this.#backOff = new BackOff({ minMs: 1_000, maxMs: 15_000, random });
    this.#holdOff = new BackOff({ minMs: 5_000, maxMs: 60_000, random });
  }

  /** Points in hand, and how long the oldest fresh one has waited. */
  progress(): { readonly inFlight: number; readonly waitedMs: number | undefined } {
    const since = this.#loader.oldest("live");
    return {
      inFlight: this.#points(),
      waitedMs: since === undefined ? undefined : this.#runtime.clock.monotonic() - since,
    };
  }

  /** Delivers until `stop` aborts; what is then under way is decided, unless `grace` aborts first. */
  async run(stop: AbortSignal, grace: AbortSignal): Promise<void> {
    const { pacer, sink, reader, tally } = this.#parts;
    try {
      while (!stop.aborted) {
        const shipment = this.#again ?? (await this.#next(stop));
        const outcome = await pacer.run(() => {
          tally.started();
          return sink.send(shipment.frame, grace);
        }, stop);
        const waitMs = await this.#decide(shipment, outcome);
        await this.#settle();
        if (waitMs > 0) await this.#runtime.clock.sleep(waitMs, stop);
      }
    } catch (error) {
      if (!stop.aborted && !grace.aborted) throw error;
    } finally {
      reader.release(this.#window.open());
    }
  }

  /** Resolves with a request that is ready to go, about when it may. */
  async #next(stop: AbortSignal): Promise<Shipment> {
    const { clock } = this.#runtime;
    for (;;) {
      await this.#gather(stop);
      const earlyMs = this.#parts.pacer.waitMs - buildAheadMs;
      if (earlyMs > 0 && this.#points() > 0) {
        await clock.sleep(earlyMs, stop);
        await this.#gather(stop);
      }
      const shipment = await this.#loader.next();
      if (shipment) return shipment;
      if (this.#points() > 0) await clock.sleep(heldMs, stop);
      else {
        this.#parts.tally.enter("idle");
        await this.#intake.wait(stop);
      }
    }
  }

  #points(): number {
    return this.#window.points("live") + this.#window.points("backlog") + this.#bisection.points;
  }

  async #gather(stop: AbortSignal): Promise<void> {
    await this.#intake.fill(stop);
    const unsendable = this.#intake.takeUnsendable();
    if (unsendable.length === 0) return;
    this.#parts.tally.rejected(unsendable.length);
    await this.#parts.rejects.add(unsendable.map((point) => ({ ...point, code: undefined })));
    await this.#settle();
  }

  /** Acts on the answer; gives the milliseconds to wait before the next request, beside the spacing. */
  async #decide(shipment: Shipment, outcome: Outcome): Promise<number> {
    this.#again = undefined;
    if (outcome.kind !== "accepted") this.#parts.tally.failed(outcome.kind);
    switch (outcome.kind) {
      case "accepted":
        for (const [input, id] of outcome.signals) this.#parts.catalog.learn(input, id);
        this.#accepted(shipment);
        return 0;
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
        this.#again = shipment;
        return 0;
      case "unauthorized":
        return this.#trouble(shipment, "holding", outcome.reason, this.#holdOff.next());
      case "unavailable":
        return this.#trouble(shipment, "unreachable", outcome.cause.message, this.#backOff.next());
      default:
        return unreachable(outcome);
    }
  }

  #accepted(shipment: Shipment): void {
    const { points, body } = shipment.frame;
    let lagMs: number | undefined;
    if (shipment.kind === "suspect") {
      this.#bisection.accepted();
      for (const column of shipment.portion.columns) this.#window.settleExtracted(column, false);
    } else {
      for (const { queue, count } of shipment.parts) this.#window.settle(queue, count);
      if (shipment.since !== undefined) lagMs = this.#runtime.clock.monotonic() - shipment.since;
    }
    this.#parts.tally.accepted({ points, bytes: body.length, lagMs });
    this.#recovered(points);
  }

  /** The service answers again. What waits in the live lane is no news then: it goes back, and the newest come first. */
  #recovered(points: number): void {
    this.#breaker.accepted(points);
    this.#backOff.reset();
    this.#holdOff.reset();
    const since = this.#troubleSince;
    this.#troubleSince = undefined;
    if (since === undefined || this.#runtime.clock.monotonic() - since <= this.#parts.maxLagMs) return;
    this.#window.forget("live");
    this.#loader.leadWithLive();
  }

  async #partial(shipment: Shipment, outcome: Extract<Outcome, { kind: "partial" }>): Promise<number> {
    const stored = new Set(outcome.accepted);
    const reasons = new Map(outcome.refused.map(({ input, reason }) => [input, reason]));
    if (shipment.kind === "suspect") this.#bisection.accepted();
    let points = 0;
    for (const column of this.#columnsOf(shipment, (input) => stored.has(input) || reasons.has(input))) {
      const reason = reasons.get(column.input);
      if (reason === undefined && stored.has(column.input)) {
        this.#window.settleExtracted(column, false);
        points += column.count;
      } else if (reason !== undefined && column.count === 1) {
        this.#breaker.rejected(1);
        await this.#reject(column, undefined, reason);
      } else this.#bisection.add(new Portion([column]), []);
    }
    if (points > 0) this.#recovered(points);
    if (this.#breaker.open) return this.#hold("only parts of what is sent are accepted");
    return points > 0 ? 0 : this.#backOff.next();
  }

  /** Columns taken out of the window; of a suspect all, else those that `decided` names. */
  #columnsOf(shipment: Shipment, decided: (input: InputId) => boolean): readonly PortionColumn[] {
    if (shipment.kind === "suspect") return shipment.portion.columns;
    const columns = new Map<InputId, PortionColumn>();
    for (const { queue, count } of shipment.parts) {
      if (!decided(queue.input)) continue;
      const column = this.#window.extract(queue, count);
      columns.set(queue.input, columns.get(queue.input)?.followedBy(column) ?? column);
    }
    return [...columns.values()];
  }

  /** Something in it is wrong: what it is gets searched for while the rest goes on. */
  async #refused(shipment: Shipment, outcome: Extract<Outcome, { kind: "refused" }>): Promise<number> {
    const { code, reason, inputs } = outcome;
    this.#breaker.refused();
    // Nothing is given up then; the loader goes on trying suspects and others by turns, one a minute.
    if (this.#breaker.open) return this.#hold(reason);
    if (shipment.kind === "fresh") this.#bisection.add(new Portion(this.#columnsOf(shipment, () => true)), inputs);
    const culprit = shipment.kind === "suspect" ? this.#bisection.refused(inputs) : undefined;
    for (const column of culprit?.columns ?? []) {
      this.#breaker.rejected(1);
      await this.#reject(column, code, reason);
    }
    return 0;
  }

  async #reject(column: PortionColumn, code: number | undefined, reason: string): Promise<void> {
    const { input, times, values, count } = column;
    const { rejects, tally } = this.#parts;
    tally.rejected(count);
    await rejects.add(Array.from(times, (time, i) => ({ input, time, value: values[i] ?? Number.NaN, code, reason })));
    this.#window.settleExtracted(column, true);
  }

  #tooLarge(shipment: Shipment): number {
    const { frame } = shipment;
    if (frame.points <= 1)
      return this.#trouble(shipment, "holding", "a single point is too large a request", breakerMs);
    this.#loader.shrink(frame.body.length);
    this.#runtime.log.warn({ bytes: frame.body.length }, "the service takes smaller requests only");
    if (shipment.kind === "suspect") this.#bisection.split();
    return 0;
  }

  #hold(reason: string): number {
    const message = `nearly everything is refused: ${reason}`;
    this.#parts.tally.trouble("holding", "SERVICE_REJECTED", message);
    return breakerMs;
  }

  #trouble(shipment: Shipment, state: Trouble, message: string, waitMs: number): number {
    const code: ErrorCode = state === "holding" ? "SERVICE_REFUSED" : "SERVICE_UNREACHABLE";
    this.#again = shipment;
    this.#troubleSince ??= this.#runtime.clock.monotonic();
    this.#parts.tally.trouble(state, code, message);
    return waitMs;
  }

  async #settle(): Promise<void> {
    const settled = this.#window.takeSettled();
    if (settled.length > 0) await this.#parts.reader.settle(settled);
    const released = this.#window.takeReleased();
    if (released.length > 0) this.#parts.reader.release(released);
  }
}
