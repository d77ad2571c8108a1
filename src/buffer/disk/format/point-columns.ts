// Points on their way to the disk, in the order they came. What the threads hand each other.

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
