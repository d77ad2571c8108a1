// Decimal shifts that keep decimal numbers decimal.

/** `value` times ten to the power of `exponent`, without binary dust: 2301 and −1 are 230.1. */
export function scaled(value: number | bigint, exponent: number): number | bigint {
  // An integer divided by an exact power of ten is the double nearest to the decimal; a product with 0.1 need not be.
  if (exponent < 0) return Number(value) / 10 ** -exponent;
  return typeof value === "bigint" ? value * 10n ** BigInt(exponent) : value * 10 ** exponent;
}
