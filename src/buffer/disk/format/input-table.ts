// Numbers for Input IDs, so that points travel and are compared as numbers.
import type { InputId } from "../../../core/point.ts";

/** Numbers from 0 on, in the order of first use. */
export class InputTable {
  readonly #numbers = new Map<InputId, number>();
  readonly #inputs: InputId[] = [];

  get size(): number {
    return this.#inputs.length;
  }

  numberOf(input: InputId): number {
    let number = this.#numbers.get(input);
    if (number === undefined) {
      number = this.#inputs.length;
      this.#numbers.set(input, number);
      this.#inputs.push(input);
    }
    return number;
  }

  find(input: InputId): number | undefined {
    return this.#numbers.get(input);
  }

  inputAt(number: number): InputId {
    return this.#inputs[number]!;
  }

  /** The Input IDs numbered from `first` on. */
  since(first: number): InputId[] {
    return this.#inputs.slice(first);
  }
}
