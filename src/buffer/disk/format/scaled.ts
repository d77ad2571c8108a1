// Represents a value as an integer multiple of a power of ten, if that reproduces it bit by bit.

/** Limit of the integers: the zigzag encoding of a difference of two of them is still exact. */
export const maxScaled = 2 ** 50;
export const maxDecimals = 14;
export const powers = Float64Array.from({ length: maxDecimals + 1 }, (_, n) => 10 ** n);

export function isExact(value: number, power: number): boolean {
  const scaled = Math.round(value * power);
  // −0 has no integer form.
  return (
    scaled / power === value && scaled < maxScaled && scaled > -maxScaled && (scaled !== 0 || !Object.is(value, -0))
  );
}
