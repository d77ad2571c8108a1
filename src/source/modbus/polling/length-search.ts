// What was found out of the lengths that a unit answers to, while a block that it is silent about is taken apart. Pure.

/** Blocks of one length that are silent while no longer one is answered: after so many it is the length that matters, not an address. */
const silentToBeTooLong = 2;
/** After so many silences in a row it is in doubt whether the unit is still there. */
const silentToDoubt = 3;

export class LengthSearch {
  readonly #silent: number[] = [];
  #longestAnswered = 0;
  #silentInARow = 0;

  silent(count: number): void {
    this.#silent.push(count);
    this.#silentInARow++;
  }

  answered(count: number): void {
    this.#longestAnswered = Math.max(this.#longestAnswered, count);
    this.#silentInARow = 0;
  }

  /** Whether a block of `count` need not be asked for, since the unit would be silent. */
  isTooLong(count: number): boolean {
    if (count <= this.#longestAnswered) return false;
    return this.#silent.filter((length) => length <= count).length >= silentToBeTooLong;
  }

  /** Whether to ask first whether the unit is still there. */
  get isInDoubt(): boolean {
    return this.#silentInARow >= silentToDoubt;
  }

  /** The unit answered to something else. */
  unitAnswered(): void {
    this.#silentInARow = 0;
  }
}
