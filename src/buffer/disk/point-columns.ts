// Points on their way to the disk, in the order they came. What the threads hand each other.

/** Columns of the same length; `inputs` are numbers of an `InputTable`. */
export interface PointColumns {
  readonly inputs: Uint32Array<ArrayBuffer>;
  readonly times: Float64Array<ArrayBuffer>;
  readonly values: Float64Array<ArrayBuffer>;
  readonly count: number;
}
