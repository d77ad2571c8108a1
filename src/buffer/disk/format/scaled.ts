// Values as integers of a power of ten, where that gives them back bit by bit.

/** Differences of two such integers still are exact, twice as large as zigzag makes them. */
export const maxScaled = 2 ** 50;
export const maxDecimals = 14;
export const powers = Float64Array.from({ length: maxDecimals + 1 }, (_, n) => 10 ** n);

export function isExact(value: number, power: number): boolean {
  const scaled = Math.round(value * power);
  // An integer has no −0.
  return (
    scaled / power === value && scaled < maxScaled && scaled > -maxScaled && (scaled !== 0 || !Object.is(value, -0))
  );
}
