// Log of settled series by ranges of blocks. A request settles thousands of series in hundreds of blocks, usually all
// of them in the same blocks.
import type { InputId } from "../../core/point.ts";
import { RepeatedList } from "../../lib/values/repeated-list.ts";

/** Series settled in `blocks` consecutive blocks, starting with number `first`. */
export interface SettledStretch {
  readonly first: number;
  readonly blocks: number;
  readonly inputs: readonly InputId[];
}

interface OpenStretch extends Omit<SettledStretch, "inputs"> {
  readonly inputs: RepeatedList<InputId>;
}

/** Lists kept for the next request. */
const keptLists = 4;

export class SettledLog {
  /** First block → number of blocks → entry. */
  readonly #stretches = new Map<number, Map<number, OpenStretch>>();
  /** Lists of the first entries, which requests of polled series repeat. */
  readonly #lists: RepeatedList<InputId>[] = [];
  #entries = 0;
  /** Entry of the last series, which the next one usually shares. */
  #last: OpenStretch | undefined;

  add(input: InputId, first: number, blocks: number): void {
    let stretch = this.#last;
    if (stretch?.first !== first || stretch.blocks !== blocks) {
      const sameFirst = this.#stretches.get(first) ?? new Map<number, OpenStretch>();
      this.#stretches.set(first, sameFirst);
      stretch = sameFirst.get(blocks) ?? { first, blocks, inputs: this.#list() };
      sameFirst.set(blocks, stretch);
      this.#last = stretch;
    }
    stretch.inputs.add(input);
  }

  take(): SettledStretch[] {
    if (!this.#last) return [];
    const all = [...this.#stretches.values()].flatMap((sameFirst) => [...sameFirst.values()]);
    this.#stretches.clear();
    this.#last = undefined;
    this.#entries = 0;
    return all.map(({ first, blocks, inputs }) => ({ first, blocks, inputs: inputs.take() }));
  }

  #list(): RepeatedList<InputId> {
    const at = this.#entries++;
    return at < keptLists ? (this.#lists[at] ??= new RepeatedList()) : new RepeatedList();
  }
}
