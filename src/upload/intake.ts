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

export class Intake {
  readonly #parts: IntakeParts;
  #unsendable: Unsendable[] = [];

  constructor(parts: IntakeParts) {
    this.#parts = parts;
  }

  /** Takes what is there, the newest first, without waiting for more. */
  async fill(signal: AbortSignal): Promise<void> {
    for (;;) {
      const block = await this.#take("live", false, signal);
      if (!block) break;
      if (!this.#isNews(block)) {
        // All that is new has been taken: the rest comes in its order, as backlog.
        this.#parts.reader.release([block.id]);
        break;
      }
      this.#add("live", block);
    }
    for (
      let block = await this.#take("backlog", false, signal);
      block;
      block = await this.#take("backlog", false, signal)
    )
      this.#add("backlog", block);
  }

  /** Resolves when something has been taken. */
  async wait(signal: AbortSignal): Promise<void> {
    const block = await this.#take("live", true, signal);
    if (block) this.#add(this.#isNews(block) ? "live" : "backlog", block);
  }

  /** What cannot be sent at all, since the last call. */
  takeUnsendable(): Unsendable[] {
    const unsendable = this.#unsendable;
    this.#unsendable = [];
    return unsendable;
  }

  async #take(lane: Lane, wait: boolean, signal: AbortSignal): Promise<Block | undefined> {
    const { reader, window, mostPoints } = this.#parts;
    const maxPoints = Math.min(mostPerTake, window.room, mostPoints(lane) - window.points(lane));
    if (maxPoints < leastRoom && !wait) return undefined;
    return await reader.take(lane, { wait, maxPoints: Math.max(maxPoints, leastRoom) }, signal);
  }

  #add(lane: Lane, block: Block): void {
    const { window, clock } = this.#parts;
    for (const unsendable of window.add(lane, block, clock.monotonic())) this.#unsendable.push(unsendable);
  }

  /** By the newest of its times. A device whose clock is behind has no news while a backlog drains, and is no later otherwise. */
  #isNews({ series }: Block): boolean {
    const since = this.#parts.clock.now() - this.#parts.newsMs * 1_000;
    return series.some(({ times }) => (times.at(-1) ?? 0) >= since);
  }
}
