// Finds the points that cause a refusal by bisection, so that the others can be delivered. Each step takes at most two
// requests. If one half is accepted, the other is split without being sent as a whole.
import type { InputId } from "../../core/point.ts";
import { Portion, type PortionColumn } from "../window/portion.ts";

interface Suspect {
  portion: Portion;
  /** The other half, while undecided. */
  readonly sibling?: Suspect;
  /** The service refused it, or accepted the other half of a refused portion. */
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
    return this.#suspects.some(({ portion }) => portion.columns.some((column) => column.input === input));
  }

  /** Adds a refused frame. `named`: the inputs that the service blamed, if any. */
  add(portion: Portion, named: readonly InputId[]): void {
    this.#points += portion.points;
    const suspect = { portion, guilty: true };
    const divided = portion.divide(new Set(named));
    if (divided) this.#push(divided[0], divided[1]);
    else this.#suspects.push(suspect);
  }

  /** Schedules unsuspicious points to be sent first. */
  resend(columns: readonly PortionColumn[]): void {
    if (columns.length === 0) return;
    const portion = new Portion(columns);
    this.#points += portion.points;
    this.#suspects.push({ portion, guilty: false });
  }

  /** Removes all points of `input`. The caller decides about them. */
  withdraw(input: InputId): PortionColumn[] {
    const withdrawn: PortionColumn[] = [];
    for (let at = this.#suspects.length - 1; at >= 0; at--) {
      const suspect = this.#suspects[at]!;
      const left = suspect.portion.columns.filter((column) => column.input !== input);
      if (left.length === suspect.portion.columns.length) continue;
      for (const column of suspect.portion.columns) if (column.input === input) withdrawn.push(column);
      if (left.length === 0) this.#suspects.splice(at, 1);
      else suspect.portion = new Portion(left);
    }
    for (const { count } of withdrawn) this.#points -= count;
    return withdrawn;
  }

  /** The next portion to send. Stays the same until it is accepted, refused or split. */
  next(): Portion | undefined {
    for (;;) {
      const suspect = this.#suspects.at(-1);
      if (!suspect) return undefined;
      const halves = suspect.guilty ? suspect.portion.halves() : undefined;
      // A portion known to be refused is split. A single point is always sent by itself.
      if (!halves) return suspect.portion;
      this.#suspects.pop();
      this.#push(halves[1], halves[0]);
    }
  }

  accepted(): void {
    const suspect = this.#suspects.pop();
    if (!suspect) return;
    this.#points -= suspect.portion.points;
    if (suspect.sibling) suspect.sibling.guilty = true;
  }

  /** The portion of `next` was refused. Returns it if it is a single point, which ends its search. */
  refused(named: readonly InputId[]): Portion | undefined {
    const suspect = this.#suspects.at(-1);
    if (!suspect) return undefined;
    if (suspect.portion.points === 1) {
      this.#suspects.pop();
      this.#points--;
      return suspect.portion;
    }
    const divided = suspect.portion.divide(new Set(named));
    suspect.guilty = true;
    if (divided) {
      this.#suspects.pop();
      this.#push(divided[0], divided[1]);
    }
    return undefined;
  }

  /** The service failed on the portion of `next`: others go first. Points of one input keep their order. */
  postpone(): void {
    const inputs = new Set<InputId>();
    const behind: Suspect[] = [];
    const others: Suspect[] = [];
    for (const suspect of this.#suspects.splice(0).toReversed()) {
      const { columns } = suspect.portion;
      if (behind.length > 0 && !columns.some(({ input }) => inputs.has(input))) {
        others.unshift(suspect);
        continue;
      }
      for (const { input } of columns) inputs.add(input);
      behind.unshift(suspect);
    }
    this.#suspects.push(...behind, ...others);
  }

  /** The portion of `next` exceeds the request size. */
  split(): void {
    const suspect = this.#suspects.pop();
    const halves = suspect?.portion.halves();
    if (halves) for (const portion of [halves[1], halves[0]]) this.#suspects.push({ portion, guilty: false });
    else if (suspect) this.#suspects.push(suspect);
  }

  #push(later: Portion, sooner: Portion): void {
    const sibling = { portion: later, guilty: false };
    this.#suspects.push(sibling, { portion: sooner, guilty: false, sibling });
  }
}
