// Which value is asked for to see whether a unit is there at all. Pure.
import type { Block, Span } from "../config/plan.ts";
import { places } from "../config/plan.ts";

/**
 * The value that was read last; where it is not answered any more, one after the other: some devices are silent about an
 * address that they do not have, and that must not make a unit seem dead.
 */
export class ProbeChoice<Item extends Span> {
  readonly #places: readonly Block<Item>[];
  #next: number;
  #known: Block<Item> | undefined;

  /** `random`: where to begin, from 0 to below 1, so that another connection begins elsewhere. */
  constructor(items: readonly Item[], random: number) {
    this.#places = places({ items }).toSorted((a, b) => a.count - b.count);
    this.#next = Math.floor(random * this.#places.length);
  }

  /** What to ask for now; of `within` where that is given. */
  take(within?: Block<Item>): Block<Item> {
    if (this.#known && within === undefined) return this.#known;
    const choice = within ? places(within) : this.#places;
    return choice[this.#next++ % choice.length]!; // whoever polls wants something
  }

  /** The unit gave `block`. */
  answered(block: Block<Item>): void {
    if (this.#known === undefined) this.#known = places(block)[0];
  }

  /** The unit was silent about `block`. */
  silent(block: Block<Item>): void {
    if (this.#known === block) this.#known = undefined;
  }
}
