// Chooses the content of the next request and encodes it: a lane and its series, part of a refused
// request, or a retry of parked inputs.
import type { Lane } from "../../core/buffer.ts";
import type { InputId } from "../../core/point.ts";
import type { Clock } from "../../core/runtime.ts";
import type { Frame } from "../../core/sink.ts";
import { inSlices } from "../../lib/flow/in-slices.ts";
import { RepeatedList } from "../../lib/values/lists.ts";
import type { Bisection } from "../failures/bisection.ts";
import type { FailureSearch } from "../failures/failure-search.ts";
import type { LearnedLimit } from "../failures/learned-limit.ts";
import { Envelope, type FramePlan, FrameWriter, firstRequestId } from "../packing/frame.ts";
import { Packer } from "../packing/packer.ts";
import type { Candidates } from "../packing/shared-times.ts";
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
  /** Whether the points of an input must wait while others of it are in the search for refused points. */
  readonly waits: (input: InputId) => boolean;
}

/** Filter for the series of a request. Undefined: all. */
type Choice = ((queue: SeriesQueue) => boolean) | undefined;

/** Answers name every series. This number makes at most 6 MB. */
const mostSeries = 20_000;
const leastSpacingMs = 1_000;
/** Points in search of a refused one, above which no others are sent: they are in memory, at 25 bytes each. */
const mostSearched = 1_000_000;
/** Consecutive requests of the live lane while a backlog waits. */
const mostLiveInARow = 9;
const none: ReadonlySet<InputId> = new Set();
/** Share of `maxLag` after which a series leads the frame, to arrive in time. The best of 0.2 to 0.8 in tests. */
export const urgentShare = 0.3;
/** Shares of `maxLag`: in which all must be sent for new points to be sent as backlog, and how long that may go on. */
const soonShare = 0.7;
const togetherShare = 0.8;
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
  let liveNext = false;
  let isSparse: boolean | undefined;
  let togetherSince: number | undefined;
  let isTogether = false;
  /** When the last request was built, and the time between the last two. */
  let builtAt = Number.NEGATIVE_INFINITY;
  let spacingMs = Number.POSITIVE_INFINITY;
  /** Inputs whose points wait until those in the search for refused points are decided on. */
  let searched = none;
  const envelope = new Envelope(parts.integration);
  const writer = new FrameWriter(envelope, parts.limit.most);

  /** Whether the backlog has points that are no news. What is new may be backlog for a moment where there is much. */
  function hasOld(): boolean {
    const { window, clock, maxLagMs } = parts;
    const since = clock.now() - 2_000 * maxLagMs;
    for (const { count, firstTime } of window.queues("backlog")) if (count > 0 && firstTime < since) return true;
    return false;
  }

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
    if (backlog === 0 || liveNext) return "live";
    const since = liveInARow < mostLiveInARow ? oldest("live") : undefined;
    if (since === undefined) return "backlog";
    const isShort = parts.hasAll() && backlog <= (lastBacklog * maxLagMs) / leastSpacingMs;
    if (isShort ? backlog < window.points("live") : liveFirst) return "live";
    const patienceMs = Math.min(maxLagMs / 2 - 1_000, 2_000);
    return clock.monotonic() - since >= patienceMs ? "live" : "backlog";
  }

  function candidates(lane: Lane, may?: Choice): Candidates {
    const { window, holds, waits } = parts;
    const queues = window.filled(
      lane,
      (queue) => !holds(queue.input) && !(searched.has(queue.input) && waits(queue.input)) && may?.(queue) !== false,
    );
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
      liveNext = false;
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
    /** The next new request carries points of the live lane only, if there are any, whatever is searched. */
    tryLive(): void {
      liveNext = true;
    },
    /** Whether backlog frames have more nulls than points: a larger window then pays off. Undefined: unknown. */
    get sparse(): boolean | undefined {
      return isSparse;
    },
    /**
     * Whether new points are to be leased as backlog, because everything can be sent within `maxLag`: of series with
     * different times, a frame carries several times as many points where each has many. Call before each lease.
     */
    isTogether(): boolean {
      const { window, clock, hasAll, maxLagMs } = parts;
      const backlog = window.points("backlog");
      const needMs = ((backlog + window.points("live")) / lastBacklog) * spacingMs;
      const isShort = backlog > 0 && isSparse === true && hasAll() && needMs <= maxLagMs * soonShare;
      if (backlog === 0) togetherSince = undefined;
      else if (isShort && togetherSince === undefined && hasOld()) togetherSince = clock.monotonic();
      isTogether = isShort && clock.monotonic() - (togetherSince ?? Number.NaN) <= maxLagMs * togetherShare;
      return isTogether;
    },
    /** When new points began to be leased as backlog, in monotonic milliseconds. Undefined: they have a lane. */
    get togetherSince(): number | undefined {
      return isTogether ? togetherSince : undefined;
    },
    /** Points of the last frame that the live lane led. */
    get livePoints(): number {
      return lastLive;
    },
    /** Undefined: no request may be sent now. The body is valid until the next call. */
    async next(): Promise<InFlightRequest | undefined> {
      const { window, bisection, clock } = parts;
      const now = clock.monotonic();
      spacingMs = Math.max(leastSpacingMs, now - builtAt);
      builtAt = now;
      searched = bisection.empty || liveNext ? none : bisection.inputs();
      const fresh = window.points("live") + window.points("backlog");
      // Refused and other points alternate, so that neither blocks the other.
      if (!bisection.empty && (suspectsTurn || fresh === 0 || bisection.points >= mostSearched)) {
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
