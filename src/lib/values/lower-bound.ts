/** Index of the first of the ascending `values`, from `from` on, that is at least `value`; their number if none is. */
export function lowerBound(values: Uint32Array | Float64Array, value: number, from = 0): number {
  let low = from;
  let high = values.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (values[middle]! < value) low = middle + 1;
    else high = middle;
  }
  return low;
}
