// Fills the window from the buffer, in two lanes, as far as there is room.
import type { Block } from "../../core/block.ts";
import type { BufferReader, Lane } from "../../core/buffer.ts";
import type { InputId } from "../../core/point.ts";
import type { Clock } from "../../core/runtime.ts";
import type { PortionColumn } from "./portion.ts";
import type { Unsendable, Window } from "./window.ts";

export interface PrefetcherParts {
  readonly reader: BufferReader;
  readonly window: Window;
  readonly clock: Clock;
  /** Points older than this when they are taken are no news, whichever lane gives them. */
  readonly newsMs: number;
  /** Points of a lane beyond which no more are taken now. */
  readonly mostPoints: (lane: Lane) => number;
  /** Points of a block of the backlog that are few beside those of a frame, which ends where a block does. */
  readonly blockPoints: () => number;
  /** Inputs whose points stay in the buffer. */
  readonly except: () => readonly InputId[] | undefined;
}

/** Points asked for at a time, so that others run in between. */
const mostPerTake = 100_000;
/** Below this much room nothing is taken: blocks may be somewhat larger than what was asked for. */
const leastRoom = 100;
/** Room for the points of one input in the largest record of the buffer: eight of them take as much as one of many inputs. */
const leastSingle = 10_000;
/** What is asked for while there is a backlog, however little was new the last time. */
const leastNews = 1_000;
/**
 * Share of the backlog's room below which no more of it is taken: a small rest would bring some series of a poll without
 * the others, and what shares its times would go out apart. What is less in hand holds nothing up.
 */
const leastShare = 1 / 8;

interface Take {
  readonly wait: boolean;
  /** Undefined: as much as there is room for. */
  readonly most?: number;
  /** A block need not have more. */
  readonly enough?: number;
}

export class Prefetcher {
  readonly #parts: PrefetcherParts;
  /** Points that were news the last two times: a request looks twice, and finds little the second time. */
  #news: readonly [number, number] = [0, 0];
  #unsendable: Unsendable[] = [];
  #hasAll = false;

  constructor(parts: PrefetcherParts) {
    this.#parts = parts;
  }

  /** Takes what is there, the newest first, without waiting for more. */
  async fill(signal: AbortSignal): Promise<void> {
    await this.#fillLive(signal);
    const { mostPoints } = this.#parts;
    for (;;) {
      const most = mostPoints("backlog");
      this.#hasAll = false;
      if (most - this.#taken("backlog") < Math.min(mostPerTake, most * leastShare)) break;
      const block = await this.#take("backlog", { wait: false, enough: this.#parts.blockPoints() }, signal);
      this.#hasAll = !block;
      if (!block) break;
      this.#add("backlog", block);
    }
  }

  /** Whether the buffer had no more of the backlog when it was last asked. */
  get hasAll(): boolean {
    return this.#hasAll;
  }

  /**
   * A block reaches back as far as it is asked to, and what is old in it would have to go out as if it were new. So while
   * there is a backlog as much is asked for as was new the last time, then as much again as was found, as long as all of it
   * is new.
   */
  async #fillLive(signal: AbortSignal): Promise<void> {
    const { mostPoints, window } = this.#parts;
    // A nearly drained backlog does not count as a backlog.
    const behind = window.points("backlog") > mostPoints("backlog") * leastShare;
    let news = 0;
    for (;;) {
      const most = behind ? news || Math.max(leastNews, ...this.#news) : mostPerTake;
      const block = await this.#take("live", { wait: false, most }, signal);
      if (!block) break;
      const fresh = this.#newsIn(block);
      if (fresh === 0) {
        // All that is new has been taken: the rest comes in its order, as backlog.
        this.#parts.reader.release([block.id]);
        break;
      }
      this.#add("live", block);
      news += fresh;
      if (fresh < block.points) break;
    }
    this.#news = [this.#news[1], news];
  }

  /** Resolves when something has been taken. */
  async wait(signal: AbortSignal): Promise<void> {
    const block = await this.#take("live", { wait: true }, signal);
    if (!block) return;
    // What may replace points taken before keeps its place behind them.
    this.#add(!block.isLate && this.#newsIn(block) > 0 ? "live" : "backlog", block);
  }

  /** The oldest points of an input that is left out otherwise, about `most`, out of the window; undefined: there are none. */
  async takeSingle(input: InputId, most: number, signal: AbortSignal): Promise<PortionColumn | undefined> {
    const { reader, window } = this.#parts;
    if (window.room < leastSingle) return undefined;
    const options = { wait: false, maxPoints: most, inputs: [input] };
    const block = await reader.take("backlog", options, signal);
    if (!block) return undefined;
    this.#add("backlog", block);
    return window.extractAll("backlog", input);
  }

  /** What cannot be sent at all, since the last call. */
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

  /** Points of a lane in the window, those that wait included. */
  #taken(lane: Lane): number {
    const { window } = this.#parts;
    return window.points(lane) + (lane === "backlog" ? window.waiting : 0);
  }

  #add(lane: Lane, block: Block): void {
    const { window, clock } = this.#parts;
    for (const unsendable of window.add(lane, block, clock.monotonic())) this.#unsendable.push(unsendable);
  }

  /** How many of its points are no older than news. A device whose clock is behind has none while a backlog drains, and is no later otherwise. */
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
