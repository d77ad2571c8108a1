// Fills the window from the buffer, in two lanes, as far as there is room.
import type { Block, BufferReader, Lane } from "../core/buffer.ts";
import type { Clock } from "../core/runtime.ts";
import type { Unsendable, Window } from "./window.ts";

export interface IntakeParts {
  readonly reader: BufferReader;
  readonly window: Window;
  readonly clock: Clock;
  /** Points older than this when they are taken are no news, whichever lane gives them. */
  readonly newsMs: number;
  /** Points of a lane beyond which no more are taken now. */
  readonly mostPoints: (lane: Lane) => number;
}

/** Points asked for at a time, so that others run in between. */
const mostPerTake = 100_000;
/** Below this much room nothing is taken: blocks may be somewhat larger than what was asked for. */
const leastRoom = 100;
/** After so many takes of a little each there is more news than usual. */
const fewTakes = 5;
/**
 * Share of the backlog's room below which no more of it is taken: a small rest would bring some series of a poll without
 * the others, and what shares its times would go out apart.
 */
const leastShare = 1 / 8;

interface Take {
  readonly wait: boolean;
  /** Undefined: as much as there is room for. */
  readonly most?: number;
}

export class Intake {
  readonly #parts: IntakeParts;
  /** Points of the last time that were news. */
  #usualNews = Number.POSITIVE_INFINITY;
  #unsendable: Unsendable[] = [];

  constructor(parts: IntakeParts) {
    this.#parts = parts;
  }

  /** Takes what is there, the newest first, without waiting for more. */
  async fill(signal: AbortSignal): Promise<void> {
    let news = 0;
    // As much as it was the last time, then a little more: a block reaches back as far as it is asked to, and what is old in
    // it has to go out as if it were new.
    const little = Math.max(leastRoom, this.#usualNews / 4);
    for (let most = this.#usualNews, takes = 1; ; takes++, most = takes < fewTakes ? little : most * 2) {
      const block = await this.#take("live", { wait: false, most }, signal);
      if (!block) break;
      const { all, fresh } = this.#newsIn(block);
      if (fresh === 0) {
        // All that is new has been taken: the rest comes in its order, as backlog.
        this.#parts.reader.release([block.id]);
        break;
      }
      this.#add("live", block);
      news += fresh;
      if (fresh < all) break;
    }
    if (news > 0) this.#usualNews = Math.max(leastRoom, news);
    const { mostPoints, window } = this.#parts;
    for (;;) {
      const least = Math.min(mostPerTake, mostPoints("backlog") * leastShare);
      if (mostPoints("backlog") - window.points("backlog") < least) break;
      const block = await this.#take("backlog", { wait: false }, signal);
      if (!block) break;
      this.#add("backlog", block);
    }
  }

  /** Resolves when something has been taken. */
  async wait(signal: AbortSignal): Promise<void> {
    const block = await this.#take("live", { wait: true }, signal);
    if (block) this.#add(this.#newsIn(block).fresh > 0 ? "live" : "backlog", block);
  }

  /** What cannot be sent at all, since the last call. */
  takeUnsendable(): Unsendable[] {
    const unsendable = this.#unsendable;
    this.#unsendable = [];
    return unsendable;
  }

  async #take(lane: Lane, { wait, most = mostPerTake }: Take, signal: AbortSignal): Promise<Block | undefined> {
    const { reader, window, mostPoints } = this.#parts;
    const maxPoints = Math.floor(Math.min(most, mostPerTake, window.room, mostPoints(lane) - window.points(lane)));
    if (maxPoints < leastRoom && !wait) return undefined;
    return await reader.take(lane, { wait, maxPoints: Math.max(maxPoints, leastRoom) }, signal);
  }

  #add(lane: Lane, block: Block): void {
    const { window, clock } = this.#parts;
    for (const unsendable of window.add(lane, block, clock.monotonic())) this.#unsendable.push(unsendable);
  }

  /** How many of its points are no older than news. A device whose clock is behind has none while a backlog drains, and is no later otherwise. */
  #newsIn({ series }: Block): { all: number; fresh: number } {
    const since = this.#parts.clock.now() - this.#parts.newsMs * 1_000;
    let all = 0;
    let fresh = 0;
    for (const { times } of series) {
      all += times.length;
      for (let i = times.length - 1; i >= 0 && times[i]! >= since; i--) fresh++;
    }
    return { all, fresh };
  }
}
