// The main loop of the uploader: lease, pack, send, decide, settle.
import type { BufferReader, Lane } from "../../core/buffer.ts";
import type { Runtime } from "../../core/runtime.ts";
import type { Sink } from "../../core/sink.ts";
import { deadline } from "../../lib/flow/abort.ts";
import { inSlices } from "../../lib/flow/in-slices.ts";
import type { Pacer } from "../client/pacer.ts";
import { Bisection } from "../failures/bisection.ts";
import { FailureSearch } from "../failures/failure-search.ts";
import type { ParkedInputs, ParkedStatus } from "../failures/parked-inputs.ts";
import { Prefetcher } from "../window/prefetcher.ts";
import type { InFlightRequest } from "../window/sub-batch.ts";
import { Window } from "../window/window.ts";
import { type Loader, type LoaderParts, loader } from "./loader.ts";
import { type OutcomeHandler, type OutcomeHandlerParts, outcomeHandler } from "./outcome-handler.ts";
import { RetryProbes } from "./retry-probes.ts";

interface DispatcherParts
  extends Omit<OutcomeHandlerParts, "window" | "bisection" | "search" | "loader" | "prefetcher">,
    Pick<LoaderParts, "integration" | "holds"> {
  readonly reader: BufferReader;
  readonly sink: Sink;
  readonly pacer: Pacer;
}

/**
 * Capacity of the window, in points per byte of the largest frame. A point takes about 5 bytes in a dense frame, so
 * slightly more than one frame suffices. If series share no times, a frame carries more points the deeper they are.
 */
const windowShare = { live: 1 / 14, dense: 1 / 4.6, sparse: 1 / 2.3 } as const;
/**
 * Bytes of the largest frame per point of a backlog block. A frame ends at a block boundary, so that the buffer can
 * record everything delivered. With shared times, it may miss up to one block: at 5.3 bytes a point, at most 1/32 of
 * the frame, and 1/64 on average. Without shared times, a frame carries whole series of many blocks. There a block of a
 * single series, 32 bytes a point, must fit.
 */
const blockShare = { dense: 170, sparse: 42 } as const;
/** Requests whose points the live lane leases. Older points follow as backlog and do not delay newer ones. */
const liveFrames = 4;
/** Bytes of the largest frame per leased point, until the size of frames is known. */
const bytesPerLive = 1_700;
/** Minimum, however small requests are. The buffer returns records as a whole, or single series of them. */
const leastPoints = { live: 1_000, backlog: 60_000 } as const;
const leastCapacity = 200_000;
/** The shortest interval, for which no request waits longer than the pacer demands. */
const leastIntervalMs = 1_000;
/** How long before its start the next frame is built, so that it carries recent points. */
const buildAheadMs = 60;
const heldMs = 100;
/** Wait while rejects cannot be written and nothing else is pending. */
const unkeptMs = 1_000;
/** Shortest wait for points while parked inputs are due. */
const leastWaitMs = 100;
/** Rejects that may wait in memory to be written. Beyond that, nothing is sent. */
const mostUnkept = 10_000;

export class Dispatcher {
  readonly #parts: DispatcherParts;
  readonly #runtime: Runtime;
  readonly #window: Window;
  readonly #prefetcher: Prefetcher;
  readonly #loader: Loader;
  readonly #bisection: Bisection;
  readonly #outcomes: OutcomeHandler;
  readonly #parked: ParkedInputs;
  readonly #probes: RetryProbes;
  /** Undefined: the sink cannot detect the return of the service. */
  readonly #serviceReturn: ReturnType<typeof openServiceReturn> | undefined;
  /** Monotonic time of the next request, since the last one carried everything. */
  #nextAt = 0;

  constructor(parts: DispatcherParts, runtime: Runtime) {
    const { reader, limit, integration, maxLagMs, intervalMs, holds, sink, parked } = parts;
    const { clock } = runtime;
    this.#parts = parts;
    this.#runtime = runtime;
    const capacity = Math.ceil(limit.most * (windowShare.live + windowShare.sparse));
    const window = new Window(Math.max(leastCapacity, capacity));
    this.#window = window;
    const mostPoints = (lane: Lane) => {
      const { maxBytes } = limit;
      if (lane === "backlog") {
        const share = windowShare[this.#loader.sparse ? "sparse" : "dense"];
        return Math.max(leastPoints.backlog, Math.ceil(maxBytes * share));
      }
      // Live points that fit into frames with few nulls cost little.
      if (this.#loader.sparse === false) return Math.ceil(maxBytes * windowShare.live);
      const soon = Math.max(leastPoints.live, maxBytes / bytesPerLive, this.#loader.livePoints * liveFrames);
      return Math.ceil(Math.min(maxBytes * windowShare.live, soon));
    };
    const blockPoints = () => Math.ceil(limit.maxBytes / blockShare[this.#loader.sparse ? "sparse" : "dense"]);
    this.#parked = parked;
    const except = () => parked.except;
    this.#prefetcher = new Prefetcher({ reader, window, clock, newsMs: maxLagMs * 2, mostPoints, blockPoints, except });
    const bisection = new Bisection(parked.isDoubtful);
    this.#bisection = bisection;
    const search = new FailureSearch(clock);
    const hasAll = () => this.#prefetcher.hasAll;
    const { waits } = parked;
    this.#loader = loader({ window, bisection, search, clock, integration, limit, maxLagMs, hasAll, holds, waits });
    this.#outcomes = outcomeHandler(
      { ...parts, window, bisection, search, loader: this.#loader, prefetcher: this.#prefetcher },
      runtime,
    );
    this.#serviceReturn = sink.connects && openServiceReturn(sink.connects.bind(sink), runtime, intervalMs);
    const { random } = runtime;
    this.#probes = new RetryProbes({ prefetcher: this.#prefetcher, loader: this.#loader, parked, window, random });
  }

  /** Points in flight, waiting time of the oldest point since delivery began to be behind, and parked inputs. */
  progress(): { readonly inFlight: number; readonly waitedMs: number; readonly parked: ParkedStatus } {
    const { clock } = this.#runtime;
    const since = this.#loader.oldest("live") ?? this.#loader.togetherSince ?? clock.monotonic();
    const demoted = this.#prefetcher.oldestDemoted ?? clock.now();
    return {
      inFlight: this.#points(),
      parked: this.#parked.status(),
      waitedMs: Math.max(clock.monotonic() - since, (clock.now() - demoted) / 1_000),
    };
  }

  /** Delivers until `stop` aborts. Completes the current request, unless `grace` aborts first. */
  async run(stop: AbortSignal, grace: AbortSignal): Promise<void> {
    let again: InFlightRequest | undefined;
    try {
      while (!stop.aborted) {
        const handled = await this.#sendOne(again, stop, grace);
        const isBack = handled.waitMs > 0 && (await this.#rest(handled, stop));
        // No request arrived meanwhile, so a new one with the latest points replaces the first of the outage.
        again = isBack && handled.again?.kind === "fresh" ? undefined : handled.again;
        if (isBack) await this.#outcomes.returned();
      }
    } catch (error) {
      if (!stop.aborted && !grace.aborted) throw error;
    } finally {
      this.#parts.reader.release(this.#window.open());
    }
  }

  /** Sends `again`, or the next request. A separate method, so that a wait does not retain the request. */
  async #sendOne(again: InFlightRequest | undefined, stop: AbortSignal, grace: AbortSignal) {
    const { pacer, sink, tally, intervalMs } = this.#parts;
    const inFlight = again ?? (await this.#next(stop));
    let startedAt = 0;
    const outcome = await pacer.run((turn) => {
      startedAt = this.#runtime.clock.monotonic();
      tally.started();
      return sink.send(inFlight.frame, grace, turn);
    }, stop);
    const handled = await this.#outcomes.handle(inFlight, outcome);
    // What arrived since the request was built waits for the next interval; what did not fit into it does not.
    const isAll = intervalMs > leastIntervalMs && this.#prefetcher.hasAll && !this.#loader.isLoadable;
    this.#nextAt = isAll ? startedAt + intervalMs : 0;
    await this.#settle();
    return { ...handled, isAway: outcome.kind === "unavailable" && outcome.isServerError !== true };
  }

  /** Waits. Resolves with true as soon as an unreachable service is reachable again. */
  async #rest({ waitMs, isAway }: { readonly waitMs: number; readonly isAway: boolean }, stop: AbortSignal) {
    const over = new AbortController();
    const either = AbortSignal.any([stop, over.signal]);
    const waits = [this.#runtime.clock.sleep(waitMs, either).then(() => false)];
    if (isAway && this.#serviceReturn) waits.push(this.#serviceReturn(either).then(() => true));
    try {
      return await Promise.race(waits);
    } finally {
      over.abort(new Error("the wait is over"));
      await Promise.allSettled(waits);
    }
  }

  /** Resolves with a request shortly before it may be sent. */
  async #next(stop: AbortSignal): Promise<InFlightRequest> {
    const { clock } = this.#runtime;
    for (;;) {
      if (this.#parts.rejects.waiting > mostUnkept) {
        const message = `${this.#parts.rejects.waiting} refused points cannot be written to disk; see the log`;
        this.#parts.tally.trouble("holding", "BUFFER_UNAVAILABLE", message);
        await clock.sleep(unkeptMs, stop);
        await this.#settle();
        continue;
      }
      await this.#gather(stop);
      const earlyMs = Math.max(this.#parts.pacer.waitMs, this.#nextAt - clock.monotonic()) - buildAheadMs;
      if (earlyMs > 0 && this.#points() > 0) {
        await clock.sleep(earlyMs, stop);
        await this.#gather(stop);
      }
      const inFlight = (await this.#probes.next(this.#points() === 0, stop)) ?? (await this.#loader.next());
      if (inFlight) return inFlight;
      if (this.#points() > 0) {
        await clock.sleep(heldMs, stop);
        // Late points may wait until rejects are written.
        if (this.#window.waiting > 0) await this.#settle();
      } else if (this.#parts.rejects.waiting > 0) {
        await clock.sleep(unkeptMs, stop);
        await this.#settle();
      } else {
        this.#parts.tally.idle(this.#parked.except !== undefined);
        await this.#wait(stop);
      }
    }
  }

  /** Resolves when points were leased, or a parked input is due. */
  async #wait(stop: AbortSignal): Promise<void> {
    const { dueInMs } = this.#parked;
    if (dueInMs === undefined) return await this.#prefetcher.wait(stop);
    const isDue = () => new Error("a parked input is due");
    using due = deadline(Math.max(dueInMs, leastWaitMs), stop, isDue, this.#runtime.clock);
    try {
      await this.#prefetcher.wait(due.signal);
    } catch (error) {
      if (stop.aborted || !due.signal.aborted) throw error;
    }
  }

  #points(): number {
    return this.#window.points("live") + this.#window.points("backlog") + this.#window.waiting + this.#bisection.points;
  }

  async #gather(stop: AbortSignal): Promise<void> {
    const isTogether = this.#loader.isTogether();
    if (isTogether && this.#window.points("live") > 0) {
      await inSlices(this.#window.forget("live"));
      await this.#settle();
    }
    await this.#prefetcher.fill(stop, isTogether);
    // What was leased may have to return to the buffer.
    await this.#settle();
    const unsendable = this.#prefetcher.takeUnsendable();
    if (unsendable.length === 0) return;
    // Settled only after they are written, as with rejected points.
    await this.#parts.rejects.add(unsendable, () => {
      this.#parts.tally.rejected(unsendable.length);
      this.#window.settleUnsendable(unsendable);
    });
    await this.#settle();
  }

  async #settle(): Promise<void> {
    await this.#parts.rejects.flush();
    const settled = this.#window.takeSettled();
    if (settled.length > 0) await this.#parts.reader.settle(settled);
    // A block returns only as a whole, so kept points would hold back those of other inputs for as long.
    for (const column of this.#parked.takeAllKept((kept) => this.#window.holdsBack(kept)))
      this.#window.forgetExtracted(column);
    const released = this.#window.takeReleased();
    if (released.length > 0) this.#parts.reader.release(released);
  }
}

// Detects that an unreachable service accepts connections again, to end the back-off early.
//
//   request fails   |x                                     x  request at the end of the back-off, without probes
//   probes          |x . x . x . x . o                        x no connection, o connection
//   request         |                 x                       at most 1.25 s and a connection after the return
//
// Only the change from "no connection" to "connection" counts. A service, proxy or portal that always accepts
// connections but gives no useful answer still gets one request per back-off. A running request keeps its own
// time-outs. If the network drops packets, TCP repeats connection attempts up to 8 s apart, and the request fails after
// 20 s.
/** Shortest average interval of probes in milliseconds. Random, so that agents do not return simultaneously. */
const probeEveryMs = 1_000;
const spread = 0.25;

/** Returns a function that resolves when the destination accepts connections again. Rejects with `signal.reason`. */
function openServiceReturn(
  connects: NonNullable<Sink["connects"]>,
  { clock, random }: Pick<Runtime, "clock" | "random">,
  everyMs: number = probeEveryMs,
): (signal: AbortSignal) => Promise<void> {
  /** Result of the last probe, even from before the last request, which may have failed during the return. */
  let wasAway = false;
  return async (signal) => {
    for (;;) {
      const isThere = await connects(signal);
      const isBack = isThere && wasAway;
      wasAway = !isThere;
      if (isBack) return;
      await clock.sleep(Math.max(everyMs, probeEveryMs) * (1 - spread + 2 * spread * random()), signal);
    }
  };
}
