// Assigns numbers to Input IDs, so that points are transferred and compared by number.
import type { InputId } from "../../../core/point.ts";

/** Numbers start at 0, in the order of first use. */
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

  /** A loop: `Array.from` would allocate an object for each of the thousands of numbers. */
  inputsAt(numbers: Uint32Array): InputId[] {
    const inputs: InputId[] = [];
    for (let i = 0; i < numbers.length; i++) inputs.push(this.inputAt(numbers[i]!));
    return inputs;
  }

  since(first: number): InputId[] {
    return this.#inputs.slice(first);
  }
}

/** Added to the number of an input with `sameTime: keep`. */
export const keepSameTime = 2 ** 31;

/**
 * Columns of equal length in one buffer, for transfer between the threads. `inputs` are numbers of an `InputTable`,
 * plus `keepSameTime` on the way to the log.
 */
export interface PointColumns {
  readonly inputs: Uint32Array<ArrayBuffer>;
  readonly times: Float64Array<ArrayBuffer>;
  readonly values: Float64Array<ArrayBuffer>;
  readonly count: number;
}

export function pointColumns(count: number): PointColumns {
  const buffer = new ArrayBuffer(20 * count);
  return {
    times: new Float64Array(buffer, 0, count),
    values: new Float64Array(buffer, 8 * count, count),
    inputs: new Uint32Array(buffer, 16 * count, count),
    count,
  };
}
