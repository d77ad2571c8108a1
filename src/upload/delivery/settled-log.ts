// Log of settled series by ranges of blocks. A request settles thousands of series in hundreds of blocks, usually all
// of them in the same blocks.
import type { InputId } from "../../core/point.ts";

/** Series settled in `blocks` consecutive blocks, starting with number `first`. */
export interface SettledStretch {
  readonly first: number;
  readonly blocks: number;
  readonly inputs: InputId[];
}

export class SettledLog {
  /** First block → number of blocks → entry. */
  readonly #stretches = new Map<number, Map<number, SettledStretch>>();
  /** Entry of the last series, which the next one usually shares. */
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

  take(): SettledStretch[] {
    if (!this.#last) return [];
    const all = [...this.#stretches.values()].flatMap((sameFirst) => [...sameFirst.values()]);
    this.#stretches.clear();
    this.#last = undefined;
    return all;
  }
}
