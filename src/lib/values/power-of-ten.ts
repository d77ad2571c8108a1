/** `value` times ten to the power of `exponent`, without binary rounding errors: 2301 and −1 give 230.1. */
export function scaled(value: number | bigint, exponent: number): number | bigint {
  // A bigint is beyond 2^53: as a number it would be rounded before the division.
  if (typeof value === "bigint") return exponent < 0 ? Number(`${value}e${exponent}`) : value * 10n ** BigInt(exponent);
  // Dividing an integer by a power of ten rounds once; multiplying by 0.1 may not give the nearest double.
  return exponent < 0 ? value / 10 ** -exponent : value * 10 ** exponent;
}
