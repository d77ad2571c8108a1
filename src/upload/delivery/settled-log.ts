// Which series of which blocks were settled, as stretches of blocks: a request settles thousands of series of hundreds of blocks,
// and mostly all of them in the same blocks.
import type { InputId } from "../../core/point.ts";

/** Settled in `blocks` blocks, the one numbered `first` and those that follow it. */
export interface SettledStretch {
  readonly first: number;
  readonly blocks: number;
  readonly inputs: InputId[];
}

export class SettledLog {
  /** By first block, then by how many. */
  readonly #stretches = new Map<number, Map<number, SettledStretch>>();
  /** Where the last series went: most go to the same. */
  #last: SettledStretch | undefined;

  add(input: InputId, first: number, blocks: number): void {
    let stretch = this.#last;
    if (stretch?.first !== first || stretch.blocks !== blocks) {
      const sameFirst = this.#stretches.get(first) ?? new Map<number, SettledStretch>();
      this.#stretches.set(first, sameFirst);
      stretch = sameFirst.get(blocks) ?? { first, blocks, inputs: [] };
      sameFirst.set(blocks, stretch);
      this.#last = stretch;
    }
    stretch.inputs.push(input);
  }

  /** All since the last call. */
  take(): SettledStretch[] {
    if (!this.#last) return [];
    const all = [...this.#stretches.values()].flatMap((sameFirst) => [...sameFirst.values()]);
    this.#stretches.clear();
    this.#last = undefined;
    return all;
  }
}
