// The bits that ALP takes for a column (Afroozeh, Kuffó, Boncz: ALP, SIGMOD 2024), computed without encoding it. Per
// 1,024 values it uses decimals in packed integers with exceptions, or, for real doubles, a dictionary of the upper
// bits.

const vector = 1_024;
const samples = 32;
const exceptionBits = 64 + 16;
const headerBits = 8 + 8 + 16 + 64;

export function alpBits(values: Float64Array): number {
  let decimal = 0;
  for (let from = 0; from < values.length; from += vector) decimal += decimalBits(values.subarray(from, from + vector));
  return Math.min(decimal, realDoubleBits(values));
}

/** Chooses the best exponent and factor for a sample of the values, and applies them to all. */
function decimalBits(values: Float64Array): number {
  const some = values.filter((_, i) => i % Math.ceil(values.length / samples) === 0);
  let best = { bits: Number.POSITIVE_INFINITY, exponent: 0, factor: 0 };
  for (let exponent = 0; exponent <= 18; exponent++)
    for (let factor = 0; factor <= exponent; factor++) {
      const bits = packedBits(some, exponent, factor);
      if (bits < best.bits) best = { bits, exponent, factor };
    }
  return headerBits + packedBits(values, best.exponent, best.factor);
}

function packedBits(values: Float64Array, exponent: number, factor: number): number {
  let [low, high, exceptions] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, 0];
  for (const value of values) {
    const integer = Math.round(value * 10 ** exponent * 10 ** -factor);
    if (Math.abs(integer) >= 2 ** 51 || !Object.is(integer * 10 ** factor * 10 ** -exponent, value)) exceptions++;
    else {
      if (integer < low) low = integer;
      if (integer > high) high = integer;
    }
  }
  const width = high > low ? Math.ceil(Math.log2(high - low + 1)) : 0;
  return values.length * width + exceptions * exceptionBits;
}

/** ALP_rd: up to 16 upper bits through a dictionary of 8, the others unchanged. */
function realDoubleBits(values: Float64Array): number {
  const words = new Uint32Array(values.slice().buffer);
  let best = Number.POSITIVE_INFINITY;
  for (let left = 1; left <= 16; left++) {
    const counts = new Map<number, number>();
    for (let i = 1; i < words.length; i += 2) {
      const upper = words[i]! >>> (32 - left);
      counts.set(upper, (counts.get(upper) ?? 0) + 1);
    }
    const common = [...counts.values()].toSorted((a, b) => b - a).slice(0, 8);
    const exceptions = values.length - common.reduce((sum, count) => sum + count, 0);
    const code = Math.ceil(Math.log2(Math.max(2, common.length)));
    best = Math.min(best, values.length * (64 - left + code) + exceptions * (16 + 16));
  }
  return best;
}
