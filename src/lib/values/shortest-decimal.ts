/** A binary floating-point format. `digits`: decimal digits that always survive rounding to it. */
interface FloatFormat {
  readonly round: (value: number) => number;
  readonly smallestNormal: number;
  readonly digits: number;
}
export const float16: FloatFormat = { round: Math.f16round, smallestNormal: 2 ** -14, digits: 3 };
export const float32: FloatFormat = { round: Math.fround, smallestNormal: 2 ** -126, digits: 6 };

/** The shortest decimal that rounds to `value` in `format`: 0.1 instead of 0.10000000149011612. */
export function shortestDecimal(value: number, format: FloatFormat): number {
  if (!Number.isFinite(value)) return value;
  // Any decimal with at most `digits` digits that rounds to `value` equals `toPrecision(digits)`, except for zeros.
  const from = Math.abs(value) < format.smallestNormal ? 1 : format.digits;
  for (let digits = from; digits < 9; digits++) {
    const decimal = Number(value.toPrecision(digits));
    if (format.round(decimal) === value) return decimal;
  }
  return Number(value.toPrecision(9));
}
