// Fills the window from the buffer, in two lanes, as far as there is room.
import type { BufferReader, Lane } from "../core/buffer.ts";
import type { Clock } from "../core/runtime.ts";
import type { Unsendable, Window } from "./window.ts";

export interface IntakeParts {
  readonly reader: BufferReader;
  readonly window: Window;
  readonly clock: Clock;
  /** Points of a lane beyond which no more are taken now. */
  readonly mostPoints: (lane: Lane) => number;
}

/** Points asked for at a time, so that others run in between. */
const mostPerTake = 100_000;
/** Below this much room nothing is taken: blocks may be somewhat larger than what was asked for. */
const leastRoom = 1_000;

export class Intake {
  readonly #parts: IntakeParts;
  #unsendable: Unsendable[] = [];

  constructor(parts: IntakeParts) {
    this.#parts = parts;
  }

  /** Takes what is there, the newest first, without waiting for more. */
  async fill(signal: AbortSignal): Promise<void> {
    for (const lane of ["live", "backlog"] as const) while (await this.#take(lane, false, signal));
  }

  /** Resolves when something has been taken. */
  async wait(signal: AbortSignal): Promise<void> {
    await this.#take("live", true, signal);
  }

  /** What cannot be sent at all, since the last call. */
  takeUnsendable(): Unsendable[] {
    const unsendable = this.#unsendable;
    this.#unsendable = [];
    return unsendable;
  }

  async #take(lane: Lane, wait: boolean, signal: AbortSignal): Promise<boolean> {
    const { reader, window, clock, mostPoints } = this.#parts;
    const maxPoints = Math.min(mostPerTake, window.room, mostPoints(lane) - window.points(lane));
    if (maxPoints < leastRoom && !wait) return false;
    const block = await reader.take(lane, { wait, maxPoints: Math.max(maxPoints, leastRoom) }, signal);
    if (!block) return false;
    for (const unsendable of window.add(lane, block, clock.monotonic())) this.#unsendable.push(unsendable);
    return true;
  }
}
