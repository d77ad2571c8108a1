// Fills the window from the two lanes of the buffer.
import type { Block } from "../../core/block.ts";
import type { BufferReader, Lane } from "../../core/buffer.ts";
import { type EpochMicros, epochMicros, type InputId } from "../../core/point.ts";
import type { Clock } from "../../core/runtime.ts";
import type { SubBatchColumn } from "./sub-batch.ts";
import type { Unsendable, Window } from "./window.ts";

export interface PrefetcherParts {
  readonly reader: BufferReader;
  readonly window: Window;
  readonly clock: Clock;
  /** Points that are older than this when leased do not count as new, in either lane. */
  readonly newsMs: number;
  /** Largest number of points of a lane in the window. */
  readonly mostPoints: (lane: Lane) => number;
  /** Points of a backlog block: few compared to a frame, which ends at a block boundary. */
  readonly blockPoints: () => number;
  /** Inputs whose points stay in the buffer. */
  readonly except: () => readonly InputId[] | undefined;
}

/** Points per lease, so that other tasks can run in between. */
const mostPerTake = 100_000;
/** Least space for a lease. Blocks may slightly exceed the requested size. */
const leastRoom = 100;
/** Space needed for the largest record of the buffer with points of one input. */
const leastSingle = 10_000;
/** Smallest lease of the live lane while there is a backlog. */
const leastNews = 1_000;
/** Most leases of the backlog at once. */
const mostAtOnce = 8;
/** Smallest lease as a share of the backlog's capacity. Smaller ones would separate series of one poll. */
const leastShare = 1 / 8;

interface Take {
  readonly wait: boolean;
  /** Undefined: as many as fit. */
  readonly most?: number;
  /** The block may end once it has this many points. */
  readonly enough?: number;
}

export class Prefetcher {
  readonly #parts: PrefetcherParts;
  /** News in the last two fills. Each request fills twice, and the second time finds little. */
  #news: readonly [number, number] = [0, 0];
  #unsendable: Unsendable[] = [];
  #hasAll = false;
  /** Since when new points stay in the buffer for lack of room. */
  #behindSince: EpochMicros | undefined;
  /** When all of them were leased, in monotonic milliseconds. */
  #caughtUpAt: number | undefined;

  constructor(parts: PrefetcherParts) {
    this.#parts = parts;
  }

  /** Leases what is available, newest first, without waiting. `isTogether`: all of it as backlog, oldest first. */
  async fill(signal: AbortSignal, isTogether: boolean): Promise<void> {
    if (!isTogether) await this.#fillLive(signal);
    const { mostPoints, blockPoints, window } = this.#parts;
    // Usually the first one shows that there is no backlog.
    for (let most = 1; ; most = mostAtOnce) {
      const points = mostPoints("backlog");
      const left = points - this.#taken("backlog");
      this.#hasAll = false;
      if (left < Math.min(mostPerTake, points * leastShare)) break;
      const fitting = Math.floor(Math.min(left / mostPerTake, window.room / Math.min(blockPoints(), mostPerTake)));
      this.#hasAll = !(await this.#takeBacklog(Math.max(1, Math.min(most, fitting)), signal));
      if (this.#hasAll) break;
    }
  }

  /**
   * Leases up to `count` blocks at once, since on a slow disk each answer waits for a sync. Resolves with false if the
   * backlog has no more.
   */
  async #takeBacklog(count: number, signal: AbortSignal): Promise<boolean> {
    const options = { wait: false, enough: this.#parts.blockPoints() };
    const takes = Array.from({ length: count }, async () => {
      const block = await this.#take("backlog", options, signal);
      if (block) this.#add("backlog", block);
      return block !== undefined;
    });
    // Blocks that were leased stay in the window even if another lease fails.
    const results = await Promise.allSettled(takes);
    for (const result of results) if (result.status === "rejected") throw result.reason;
    return results.every((result) => result.status === "fulfilled" && result.value);
  }

  /** Whether the last lease found no more backlog. */
  get hasAll(): boolean {
    return this.#hasAll;
  }

  /**
   * A block reaches back as far as requested, and its old points would be sent as if they were new. While there is a
   * backlog, the first lease requests the number of new points found last time. Further leases follow while all points
   * are new.
   */
  async #fillLive(signal: AbortSignal): Promise<void> {
    const { mostPoints, window } = this.#parts;
    // A nearly drained backlog does not count as a backlog.
    const behind = window.points("backlog") > mostPoints("backlog") * leastShare;
    let news = 0;
    let isFull = false;
    for (;;) {
      isFull = Math.min(window.room, mostPoints("live") - this.#taken("live")) < leastRoom;
      const most = behind ? news || Math.max(leastNews, ...this.#news) : mostPerTake;
      const block = await this.#take("live", { wait: false, most }, signal);
      if (!block) break;
      const fresh = this.#newsIn(block);
      if (fresh === 0) {
        // All new points are leased. The rest follows in order, as backlog.
        this.#parts.reader.release([block.id]);
        break;
      }
      this.#add("live", block);
      news += fresh;
      if (fresh < block.points) break;
    }
    this.#news = [this.#news[1], news];
    this.#noteBehind(isFull);
  }

  /** What stays in the buffer because nothing could be sent is the backlog of an outage, not new. */
  endOutage(): void {
    this.#behindSince = undefined;
  }

  #noteBehind(isBehind: boolean): void {
    const { clock, window, newsMs } = this.#parts;
    if (isBehind) {
      this.#behindSince ??= clock.now();
      this.#caughtUpAt = undefined;
    } else if (this.#behindSince !== undefined) {
      if (this.#hasAll) this.#caughtUpAt ??= clock.monotonic();
      const isLeft = (at: number) =>
        window.queues("backlog").some((queue) => queue.count > 0 && window.since(queue) <= at);
      const isOver = this.#caughtUpAt !== undefined && !isLeft(this.#caughtUpAt);
      if (isOver || clock.now() - this.#behindSince < newsMs * 1_000) this.#behindSince = undefined;
    }
  }

  /** Time of the oldest point that was new and had to wait as backlog, for lack of room. Undefined: none waits. */
  get oldestDemoted(): EpochMicros | undefined {
    const since = this.#behindSince;
    if (since === undefined) return undefined;
    let oldest = Number.POSITIVE_INFINITY;
    for (const { count, firstTime } of this.#parts.window.queues("backlog"))
      if (count > 0) oldest = Math.min(oldest, firstTime);
    if (oldest === Number.POSITIVE_INFINITY) return this.#hasAll ? undefined : since;
    return epochMicros(Math.max(oldest, since));
  }

  /** Resolves when points were leased. */
  async wait(signal: AbortSignal): Promise<void> {
    const block = await this.#take("live", { wait: true }, signal);
    if (!block) return;
    // Points that may replace earlier ones stay behind them.
    this.#add(!block.isLate && this.#newsIn(block) > 0 ? "live" : "backlog", block);
  }

  /**
   * Leases about `most` newest (`live`) or oldest (`backlog`) points of an otherwise excluded input, outside the window.
   * Undefined: none.
   */
  async takeSingle(input: InputId, most: number, lane: Lane, signal: AbortSignal): Promise<SubBatchColumn | undefined> {
    const { reader, window } = this.#parts;
    if (window.room < leastSingle) return undefined;
    const options = { wait: false, maxPoints: most, inputs: [input] };
    const block = await reader.take(lane, options, signal);
    if (!block) return undefined;
    this.#add(lane, block);
    return window.extractAll(lane, input);
  }

  /** Unsendable points since the last call. */
  takeUnsendable(): Unsendable[] {
    const unsendable = this.#unsendable;
    this.#unsendable = [];
    return unsendable;
  }

  async #take(lane: Lane, { wait, most = mostPerTake, enough }: Take, signal: AbortSignal): Promise<Block | undefined> {
    const { reader, window, mostPoints } = this.#parts;
    const maxPoints = Math.min(mostPerTake, most, window.room, mostPoints(lane) - this.#taken(lane));
    if (maxPoints < leastRoom && !wait) return undefined;
    const options = { wait, maxPoints: Math.max(maxPoints, leastRoom), enough, except: this.#parts.except() };
    return await reader.take(lane, options, signal);
  }

  /** Points of a lane in the window, including waiting ones. */
  #taken(lane: Lane): number {
    const { window } = this.#parts;
    return window.points(lane) + (lane === "backlog" ? window.waiting : 0);
  }

  #add(lane: Lane, block: Block): void {
    const { window, clock } = this.#parts;
    for (const unsendable of window.add(lane, block, clock.monotonic())) this.#unsendable.push(unsendable);
  }

  /** Number of new points. A device with a slow clock has none while a backlog drains. */
  #newsIn({ inputs, timeStarts, valueStarts, times }: Block): number {
    const since = this.#parts.clock.now() - this.#parts.newsMs * 1_000;
    let fresh = 0;
    for (let series = 0; series < inputs.length; series++) {
      const from = timeStarts[series]!;
      const count = valueStarts[series + 1]! - valueStarts[series]!;
      if ((times[from] ?? 0) >= since) fresh += count;
      else for (let at = from + count - 1; at >= from && times[at]! >= since; at--) fresh++;
    }
    return fresh;
  }
}
