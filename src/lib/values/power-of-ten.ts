/** `value` times ten to the power of `exponent`, without binary rounding errors: 2301 and −1 give 230.1. */
export function scaled(value: number | bigint, exponent: number): number | bigint {
  // Dividing an integer by a power of ten rounds once; multiplying by 0.1 may not give the nearest double.
  if (exponent < 0) return Number(value) / 10 ** -exponent;
  return typeof value === "bigint" ? value * 10n ** BigInt(exponent) : value * 10 ** exponent;
}
