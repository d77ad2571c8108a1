// Chooses the content of the next request and encodes it: a lane and its series, or part of a refused request.
import type { Lane } from "../../core/buffer.ts";
import type { InputId } from "../../core/point.ts";
import type { Clock } from "../../core/runtime.ts";
import type { Frame } from "../../core/sink.ts";
import { inSlices } from "../../lib/flow/in-slices.ts";
import { RepeatedList } from "../../lib/values/repeated-list.ts";
import type { Bisection } from "../failures/bisection.ts";
import type { FailureSearch } from "../failures/failure-search.ts";
import type { LearnedLimit } from "../failures/learned-limit.ts";
import type { Candidates } from "../packing/cluster.ts";
import { Envelope, type FramePlan, firstRequestId } from "../packing/frame-plan.ts";
import { FrameWriter } from "../packing/frame-writer.ts";
import { Packer } from "../packing/packer.ts";
import type { SeriesQueue } from "../series/series-queue.ts";
import type { InFlightRequest, SubBatch, SubBatchColumn } from "../window/sub-batch.ts";
import type { Window } from "../window/window.ts";

export interface LoaderParts {
  readonly window: Window;
  readonly bisection: Bisection;
  readonly search: FailureSearch;
  readonly clock: Clock;
  readonly integration: string;
  readonly limit: LearnedLimit;
  readonly maxLagMs: number;
  /** Whether the window contains the whole backlog. */
  readonly hasAll: () => boolean;
  /** Whether the points of an input must wait for its metadata. */
  readonly holds: (input: InputId) => boolean;
}

/** Filter for the series of a request. Undefined: all. */
type Choice = ((queue: SeriesQueue) => boolean) | undefined;

/** Answers name every series. This number makes at most 6 MB. */
const mostSeries = 20_000;
const leastSpacingMs = 1_000;
/** Consecutive requests of the live lane while a backlog waits. */
const mostLiveInARow = 9;
/** Share of `maxLag` after which a series leads the frame, to arrive in time. The best of 0.2 to 0.8 in tests. */
export const urgentShare = 0.3;
/** How long backlog points may be in the window before they lead a frame, in milliseconds. */
const backlogPatienceMs = 60_000;

export class Loader {
  readonly #parts: LoaderParts;
  readonly #packer = new Packer();
  readonly #envelope: Envelope;
  readonly #writer: FrameWriter;
  readonly #inputs = new RepeatedList<InputId>();
  #nextId = firstRequestId;
  #liveInARow = 0;
  #suspectsTurn = true;
  #sparse: boolean | undefined;
  #livePoints = 0;
  /** Points of the last frame that the backlog led. Infinity: unknown. */
  #backlogPoints = Number.POSITIVE_INFINITY;
  #liveFirst = true;

  constructor(parts: LoaderParts) {
    this.#parts = parts;
    this.#envelope = new Envelope(parts.integration);
    this.#writer = new FrameWriter(this.#envelope, parts.limit.most);
  }

  /** The live lane leads the next frame, so that current values appear first. */
  leadWithLive(): void {
    this.#liveFirst = true;
    this.#backlogPoints = Number.POSITIVE_INFINITY;
  }

  /** Whether backlog frames have more nulls than points: a larger window then pays off. Undefined: unknown. */
  get sparse(): boolean | undefined {
    return this.#sparse;
  }

  /** Points of the last frame that the live lane led. */
  get livePoints(): number {
    return this.#livePoints;
  }

  /** Undefined: no request may be sent now. The body is valid until the next call. */
  async next(): Promise<InFlightRequest | undefined> {
    const { window, bisection } = this.#parts;
    const fresh = window.points("live") + window.points("backlog");
    // Refused and other points alternate, so that neither blocks the other.
    if (!bisection.empty && (this.#suspectsTurn || fresh === 0)) {
      this.#suspectsTurn = false;
      return this.#suspect();
    }
    this.#suspectsTurn = true;
    const { search } = this.#parts;
    const inFlight = await this.#ofEither(this.#lane(), search.next());
    // If the first choice yields nothing, tries the other group: suspects or non-suspects.
    return inFlight ?? (search.isOn ? await this.#ofEither(this.#lane(), search.next()) : undefined);
  }

  /** Whether a request can be built now. Points of inputs that wait for their metadata are not in it. */
  get isLoadable(): boolean {
    const isIn = (lane: Lane) => this.#candidates(lane).queues.length > 0;
    return !this.#parts.bisection.empty || isIn("live") || isIn("backlog");
  }

  /** When the oldest sendable point of a lane was leased, in monotonic milliseconds. */
  oldest(lane: Lane): number | undefined {
    return this.#leasedAt(this.#candidates(lane).queues, lane);
  }

  /** When the oldest block of these queues in `lane` was leased. Blocks are numbered in that order. */
  #leasedAt(queues: readonly SeriesQueue[], lane: Lane): number | undefined {
    let first: SeriesQueue | undefined;
    for (let i = 0; i < queues.length; i++) {
      const queue = queues[i]!;
      if (queue.lane === lane && (!first || queue.firstBlock < first.firstBlock)) first = queue;
    }
    return first && this.#parts.window.since(first);
  }

  /**
   * Fresh points get the requests that `maxLag` needs; the backlog gets the rest, at least one in ten. A backlog that
   * drains within `maxLag` goes first. Fresh points are sent in between once they have waited for the usual limit.
   */
  #lane(): Lane {
    const { window, clock, maxLagMs } = this.#parts;
    const backlog = window.points("backlog");
    if (backlog === 0) return "live";
    const since = this.#liveInARow < mostLiveInARow ? this.oldest("live") : undefined;
    if (since === undefined) return "backlog";
    const isShort = this.#parts.hasAll() && backlog <= (this.#backlogPoints * maxLagMs) / leastSpacingMs;
    if (isShort ? backlog < window.points("live") : this.#liveFirst) return "live";
    const patienceMs = Math.min(maxLagMs / 2 - 1_000, 2_000);
    return clock.monotonic() - since >= patienceMs ? "live" : "backlog";
  }

  #candidates(lane: Lane, may?: Choice): Candidates {
    const { window, holds } = this.#parts;
    const queues = window.filled(lane, (queue) => !holds(queue.input) && may?.(queue) !== false);
    return { queues, since: (queue) => window.since(queue) };
  }

  async #ofEither(lane: Lane, may: Choice): Promise<InFlightRequest | undefined> {
    return (await this.#fresh(lane, may)) ?? (await this.#fresh(lane === "live" ? "backlog" : "live", may));
  }

  async #fresh(lane: Lane, may: Choice): Promise<InFlightRequest | undefined> {
    const { clock, maxLagMs } = this.#parts;
    const patienceMs = lane === "live" ? maxLagMs * urgentShare : backlogPatienceMs;
    const limits = {
      maxBytes: this.#parts.limit.maxBytes,
      envelopeBytes: this.#envelope.bytes,
      maxSeries: mostSeries,
      urgentBefore: clock.monotonic() - patienceMs,
    };
    const riders = lane === "backlog" ? this.#candidates("live", may) : undefined;
    const plan = await inSlices(this.#packer.plan(this.#candidates(lane, may), limits, riders));
    if (!plan) return undefined;
    this.#liveInARow = lane === "live" ? this.#liveInARow + 1 : 0;
    if (lane === "backlog") {
      this.#sparse = plan.nulls > plan.points;
      this.#backlogPoints = plan.points;
    } else {
      this.#livePoints = plan.points;
      this.#liveFirst = false;
    }
    const { parts } = plan;
    const since = this.#leasedAt(parts.sources, "live");
    return { kind: "fresh", frame: await this.#write(plan), parts, since };
  }

  /** Undefined: too large for a request. */
  async probe(subBatch: SubBatch, rest: readonly SubBatchColumn[]): Promise<InFlightRequest | undefined> {
    const plan = await inSlices(subBatch.plan(this.#envelope.bytes));
    if (plan.bytes > this.#parts.limit.maxBytes && subBatch.points > 1) return undefined;
    return { kind: "probe", frame: await this.#write(plan), subBatch, rest };
  }

  async #suspect(): Promise<InFlightRequest | undefined> {
    const { bisection } = this.#parts;
    for (let subBatch = bisection.next(); subBatch; subBatch = bisection.next()) {
      const plan = await inSlices(subBatch.plan(this.#envelope.bytes));
      if (plan.bytes <= this.#parts.limit.maxBytes || subBatch.points === 1)
        return { kind: "suspect", frame: await this.#write(plan), subBatch };
      bisection.split();
    }
    return undefined;
  }

  async #write(plan: FramePlan): Promise<Frame> {
    const id = this.#nextId++;
    const body = await inSlices(this.#writer.write(plan, id));
    const { sources } = plan.columns;
    for (let i = 0; i < sources.length; i++) this.#inputs.add(sources[i]!.input);
    return { id, body, points: plan.points, inputs: this.#inputs.take() };
  }
}
