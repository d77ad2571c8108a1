// Finds the points at fault in what the service refused: halves it until single points are left, so that the rest goes
// through. At most two requests for each halving; a half is not sent as a whole when the other one was accepted.
import type { InputId } from "../../core/point.ts";
import { Portion, type PortionColumn } from "./portion.ts";

interface Suspect {
  portion: Portion;
  /** The other half, while it has not been decided. */
  readonly sibling?: Suspect;
  /** The service refused it, or took the other half of something refused. */
  guilty: boolean;
}

export class Bisection {
  /** A stack: the last suspect is tried next. */
  readonly #suspects: Suspect[] = [];
  #points = 0;

  /** Points taken out of the window and not decided. */
  get points(): number {
    return this.#points;
  }

  get empty(): boolean {
    return this.#suspects.length === 0;
  }

  /** Whether points of `input` are undecided. */
  holds(input: InputId): boolean {
    return this.#suspects.some(({ portion }) => portion.columns.some((column) => column.input === input));
  }

  /** A frame was refused. `named`: the inputs that the service found fault with, if it said so. */
  add(portion: Portion, named: readonly InputId[]): void {
    this.#points += portion.points;
    const suspect = { portion, guilty: true };
    const divided = portion.divide(new Set(named));
    if (divided) this.#push(divided[0], divided[1]);
    else this.#suspects.push(suspect);
  }

  /** Sends a portion as it is, before anything else: nothing is known against it. */
  resend(columns: readonly PortionColumn[]): void {
    if (columns.length === 0) return;
    const portion = new Portion(columns);
    this.#points += portion.points;
    this.#suspects.push({ portion, guilty: false });
  }

  /** Takes out all points of `input`: the caller decides about them. */
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

  /** What to send next. Stays the same until it is accepted, refused or split. */
  next(): Portion | undefined {
    for (;;) {
      const suspect = this.#suspects.at(-1);
      if (!suspect) return undefined;
      const halves = suspect.guilty ? suspect.portion.halves() : undefined;
      // Known to be refused as a whole: only its halves can tell more. A single point is asked about for itself.
      if (!halves) return suspect.portion;
      this.#suspects.pop();
      this.#push(halves[1], halves[0]);
    }
  }

  /** The service has what `next` gave. */
  accepted(): void {
    const suspect = this.#suspects.pop();
    if (!suspect) return;
    this.#points -= suspect.portion.points;
    if (suspect.sibling) suspect.sibling.guilty = true;
  }

  /** The service refused what `next` gave. Gives it back when it was a single point: that is what was searched for. */
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

  /** The service fails over what `next` gave: whatever has other inputs goes first. Points of one input keep their order. */
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

  /** What `next` gave is too large for a request. */
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
