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

/** Added to an input's number where every value of a time is kept (`sameTime: keep`). */
export const keepSameTime = 2 ** 31;

/** Columns of the same length in one buffer, which is what is transferred between the threads; `inputs` are numbers of an `InputTable`, on their way in with `keepSameTime` where it applies. */
export interface PointColumns {
  readonly inputs: Uint32Array<ArrayBuffer>;
  readonly times: Float64Array<ArrayBuffer>;
  readonly values: Float64Array<ArrayBuffer>;
  readonly count: number;
}

/** Columns for `count` points. */
export function pointColumns(count: number): PointColumns {
  const buffer = new ArrayBuffer(20 * count);
  return {
    times: new Float64Array(buffer, 0, count),
    values: new Float64Array(buffer, 8 * count, count),
    inputs: new Uint32Array(buffer, 16 * count, count),
    count,
  };
}
