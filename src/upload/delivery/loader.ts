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

export type Loader = ReturnType<typeof loader>;

export function loader(parts: LoaderParts) {
  const packer = new Packer();
  const inputs = new RepeatedList<InputId>();
  let nextId = firstRequestId;
  let liveInARow = 0;
  let suspectsTurn = true;
  let lastLive = 0;
  /** Points of the last frame that the backlog led. Infinity: unknown. */
  let lastBacklog = Number.POSITIVE_INFINITY;
  let liveFirst = true;
  let isSparse: boolean | undefined;
  const envelope = new Envelope(parts.integration);
  const writer = new FrameWriter(envelope, parts.limit.most);

  /** When the oldest block of these queues in `lane` was leased. Blocks are numbered in that order. */
  function leasedAt(queues: readonly SeriesQueue[], lane: Lane): number | undefined {
    let first: SeriesQueue | undefined;
    for (let i = 0; i < queues.length; i++) {
      const queue = queues[i]!;
      if (queue.lane === lane && (!first || queue.firstBlock < first.firstBlock)) first = queue;
    }
    return first && parts.window.since(first);
  }

  /**
   * Fresh points get the requests that `maxLag` needs; the backlog gets the rest, at least one in ten. A backlog that
   * drains within `maxLag` goes first. Fresh points are sent in between once they have waited for the usual limit.
   */
  function nextLane(): Lane {
    const { window, clock, maxLagMs } = parts;
    const backlog = window.points("backlog");
    if (backlog === 0) return "live";
    const since = liveInARow < mostLiveInARow ? oldest("live") : undefined;
    if (since === undefined) return "backlog";
    const isShort = parts.hasAll() && backlog <= (lastBacklog * maxLagMs) / leastSpacingMs;
    if (isShort ? backlog < window.points("live") : liveFirst) return "live";
    const patienceMs = Math.min(maxLagMs / 2 - 1_000, 2_000);
    return clock.monotonic() - since >= patienceMs ? "live" : "backlog";
  }

  function candidates(lane: Lane, may?: Choice): Candidates {
    const { window, holds } = parts;
    const queues = window.filled(lane, (queue) => !holds(queue.input) && may?.(queue) !== false);
    return { queues, since: (queue) => window.since(queue) };
  }

  async function ofEither(lane: Lane, may: Choice): Promise<InFlightRequest | undefined> {
    return (await fresh(lane, may)) ?? (await fresh(lane === "live" ? "backlog" : "live", may));
  }

  async function fresh(lane: Lane, may: Choice): Promise<InFlightRequest | undefined> {
    const { clock, maxLagMs } = parts;
    const patienceMs = lane === "live" ? maxLagMs * urgentShare : backlogPatienceMs;
    const limits = {
      maxBytes: parts.limit.maxBytes,
      envelopeBytes: envelope.bytes,
      maxSeries: mostSeries,
      urgentBefore: clock.monotonic() - patienceMs,
    };
    const riders = lane === "backlog" ? candidates("live", may) : undefined;
    const plan = await inSlices(packer.plan(candidates(lane, may), limits, riders));
    if (!plan) return undefined;
    liveInARow = lane === "live" ? liveInARow + 1 : 0;
    if (lane === "backlog") {
      isSparse = plan.nulls > plan.points;
      lastBacklog = plan.points;
    } else {
      lastLive = plan.points;
      liveFirst = false;
    }
    const since = leasedAt(plan.parts.sources, "live");
    return { kind: "fresh", frame: await write(plan), parts: plan.parts, since };
  }

  async function suspect(): Promise<InFlightRequest | undefined> {
    const { bisection } = parts;
    for (let subBatch = bisection.next(); subBatch; subBatch = bisection.next()) {
      const plan = await inSlices(subBatch.plan(envelope.bytes));
      if (plan.bytes <= parts.limit.maxBytes || subBatch.points === 1)
        return { kind: "suspect", frame: await write(plan), subBatch };
      bisection.split();
    }
    return undefined;
  }

  async function write(plan: FramePlan): Promise<Frame> {
    const id = nextId++;
    const body = await inSlices(writer.write(plan, id));
    const { sources } = plan.columns;
    for (let i = 0; i < sources.length; i++) inputs.add(sources[i]!.input);
    return { id, body, points: plan.points, inputs: inputs.take() };
  }

  /** When the oldest sendable point of a lane was leased, in monotonic milliseconds. */
  function oldest(lane: Lane): number | undefined {
    return leasedAt(candidates(lane).queues, lane);
  }

  return {
    oldest,
    /** The live lane leads the next frame, so that current values appear first. */
    leadWithLive(): void {
      liveFirst = true;
      lastBacklog = Number.POSITIVE_INFINITY;
    },
    /** Whether backlog frames have more nulls than points: a larger window then pays off. Undefined: unknown. */
    get sparse(): boolean | undefined {
      return isSparse;
    },
    /** Points of the last frame that the live lane led. */
    get livePoints(): number {
      return lastLive;
    },
    /** Undefined: no request may be sent now. The body is valid until the next call. */
    async next(): Promise<InFlightRequest | undefined> {
      const { window, bisection } = parts;
      const fresh = window.points("live") + window.points("backlog");
      // Refused and other points alternate, so that neither blocks the other.
      if (!bisection.empty && (suspectsTurn || fresh === 0)) {
        suspectsTurn = false;
        return suspect();
      }
      suspectsTurn = true;
      const { search } = parts;
      const inFlight = await ofEither(nextLane(), search.next());
      // If the first choice yields nothing, tries the other group: suspects or non-suspects.
      return inFlight ?? (search.isOn ? await ofEither(nextLane(), search.next()) : undefined);
    },
    /** Whether a request can be built now. Points of inputs that wait for their metadata are not in it. */
    get isLoadable(): boolean {
      const isIn = (lane: Lane) => candidates(lane).queues.length > 0;
      return !parts.bisection.empty || isIn("live") || isIn("backlog");
    },
    /** Undefined: too large for a request. */
    async probe(subBatch: SubBatch, rest: readonly SubBatchColumn[]): Promise<InFlightRequest | undefined> {
      const plan = await inSlices(subBatch.plan(envelope.bytes));
      if (plan.bytes > parts.limit.maxBytes && subBatch.points > 1) return undefined;
      return { kind: "probe", frame: await write(plan), subBatch, rest };
    },
  };
}
