// A float of few bits as the decimal that a person would write. Pure.

/** A binary floating-point format: rounding to it, its smallest normal number, and the digits that it always keeps. */
interface FloatFormat {
  readonly round: (value: number) => number;
  readonly smallestNormal: number;
  readonly digits: number;
}
export const float16: FloatFormat = { round: Math.f16round, smallestNormal: 2 ** -14, digits: 3 };
export const float32: FloatFormat = { round: Math.fround, smallestNormal: 2 ** -126, digits: 6 };

/** The decimal of fewest digits that is the same number in `format`: 0.1 and not 0.10000000149011612. */
export function shortestDecimal(value: number, format: FloatFormat): number {
  if (!Number.isFinite(value)) return value;
  // A decimal of `digits` digits or fewer that rounds to `value` is what `toPrecision(digits)` gives, zeros aside.
  const from = Math.abs(value) < format.smallestNormal ? 1 : format.digits;
  for (let digits = from; digits < 9; digits++) {
    const decimal = Number(value.toPrecision(digits));
    if (format.round(decimal) === value) return decimal;
  }
  return Number(value.toPrecision(9));
}
