// Finds the points that cause a refusal by bisection, so that the others can be delivered. Each step takes at most two
// requests. If one half is accepted, the other is split without being sent as a whole.
import type { InputId } from "../../core/point.ts";
import { SubBatch, type SubBatchColumn } from "../window/sub-batch.ts";

interface Suspect {
  subBatch: SubBatch;
  /** The other half, while undecided. */
  readonly sibling?: Suspect;
  /** The service refused it, or accepted the other half of a refused sub-batch. */
  guilty: boolean;
}

export class Bisection {
  /** A stack: the last suspect is next. */
  readonly #suspects: Suspect[] = [];
  #points = 0;

  /** Undecided points outside the window. */
  get points(): number {
    return this.#points;
  }

  get empty(): boolean {
    return this.#suspects.length === 0;
  }

  holds(input: InputId): boolean {
    return this.#suspects.some(({ subBatch }) => subBatch.columns.some((column) => column.input === input));
  }

  /** Adds a refused frame. `named`: the inputs that the service blamed, if any. */
  add(subBatch: SubBatch, named: readonly InputId[]): void {
    this.#points += subBatch.points;
    const suspect = { subBatch, guilty: true };
    const divided = subBatch.divide(new Set(named));
    if (divided) this.#push(divided[0], divided[1]);
    else this.#suspects.push(suspect);
  }

  /** Schedules unsuspicious points to be sent first. */
  resend(columns: readonly SubBatchColumn[]): void {
    if (columns.length === 0) return;
    const subBatch = new SubBatch(columns);
    this.#points += subBatch.points;
    this.#suspects.push({ subBatch, guilty: false });
  }

  /** Removes all points of `input`. The caller decides about them. */
  withdraw(input: InputId): SubBatchColumn[] {
    const withdrawn: SubBatchColumn[] = [];
    for (let at = this.#suspects.length - 1; at >= 0; at--) {
      const suspect = this.#suspects[at]!;
      const left = suspect.subBatch.columns.filter((column) => column.input !== input);
      if (left.length === suspect.subBatch.columns.length) continue;
      for (const column of suspect.subBatch.columns) if (column.input === input) withdrawn.push(column);
      if (left.length === 0) this.#suspects.splice(at, 1);
      else suspect.subBatch = new SubBatch(left);
    }
    for (const { count } of withdrawn) this.#points -= count;
    return withdrawn;
  }

  /** The next sub-batch to send. Stays the same until it is accepted, refused or split. */
  next(): SubBatch | undefined {
    for (;;) {
      const suspect = this.#suspects.at(-1);
      if (!suspect) return undefined;
      const halves = suspect.guilty ? suspect.subBatch.halves() : undefined;
      // A sub-batch known to be refused is split. A single point is always sent by itself.
      if (!halves) return suspect.subBatch;
      this.#suspects.pop();
      this.#push(halves[1], halves[0]);
    }
  }

  accepted(): void {
    const suspect = this.#suspects.pop();
    if (!suspect) return;
    this.#points -= suspect.subBatch.points;
    if (suspect.sibling) suspect.sibling.guilty = true;
  }

  /** The sub-batch of `next` was refused. Returns it if it is a single point, which ends its search. */
  refused(named: readonly InputId[]): SubBatch | undefined {
    const suspect = this.#suspects.at(-1);
    if (!suspect) return undefined;
    if (suspect.subBatch.points === 1) {
      this.#suspects.pop();
      this.#points--;
      return suspect.subBatch;
    }
    const divided = suspect.subBatch.divide(new Set(named));
    suspect.guilty = true;
    if (divided) {
      this.#suspects.pop();
      this.#push(divided[0], divided[1]);
    }
    return undefined;
  }

  /** The service failed on the sub-batch of `next`: others go first. Points of one input keep their order. */
  postpone(): void {
    const inputs = new Set<InputId>();
    const behind: Suspect[] = [];
    const others: Suspect[] = [];
    for (const suspect of this.#suspects.splice(0).toReversed()) {
      const { columns } = suspect.subBatch;
      if (behind.length > 0 && !columns.some(({ input }) => inputs.has(input))) {
        others.unshift(suspect);
        continue;
      }
      for (const { input } of columns) inputs.add(input);
      behind.unshift(suspect);
    }
    this.#suspects.push(...behind, ...others);
  }

  /** The sub-batch of `next` exceeds the request size. */
  split(): void {
    const suspect = this.#suspects.pop();
    const halves = suspect?.subBatch.halves();
    if (halves) for (const subBatch of [halves[1], halves[0]]) this.#suspects.push({ subBatch, guilty: false });
    else if (suspect) this.#suspects.push(suspect);
  }

  #push(later: SubBatch, sooner: SubBatch): void {
    const sibling = { subBatch: later, guilty: false };
    this.#suspects.push(sibling, { subBatch: sooner, guilty: false, sibling });
  }
}
