// Scale and offset in decimal arithmetic.
//
// Scales and offsets are decimals: digits / 10^places. If the value is also a decimal with few places, all terms become
// integers below 2^53, which doubles represent exactly. A single division by a power of ten then rounds correctly: 0.1
// × 3 is 0.3. Other values (a float32 with noise, a scale of 1/3) use plain arithmetic.

/** `digits / 10^places`, both integers, `places` at least 0. */
interface Decimal {
  readonly digits: number;
  readonly places: number;
}

const powers = Array.from({ length: 23 }, (_, i) => 10 ** i);
/** Measured values have fewer decimal places. Further ones are binary rounding noise. */
const mostPlaces = 9;

/** value × scale + offset without binary rounding errors. */
export class Linear {
  readonly #scale: number;
  readonly #offset: number;
  readonly #exactScale: Decimal | undefined;
  readonly #exactOffset: Decimal | undefined;
  readonly #isIdentity: boolean;

  constructor(scale: number, offset: number) {
    this.#scale = scale;
    this.#offset = offset;
    this.#exactScale = decimal(scale);
    this.#exactOffset = decimal(offset);
    this.#isIdentity = scale === 1 && offset === 0;
  }

  apply(value: number): number {
    if (this.#isIdentity) return value;
    const scale = this.#exactScale;
    const offset = this.#exactOffset;
    if (scale && offset) {
      const valuePlaces = placesOf(value);
      const product = Math.round(value * (powers[valuePlaces] ?? 1)) * scale.digits;
      const places = valuePlaces + scale.places;
      const shared = Math.max(places, offset.places);
      const sum =
        product * (powers[shared - places] ?? Number.NaN) +
        offset.digits * (powers[shared - offset.places] ?? Number.NaN);
      const power = powers[shared];
      if (valuePlaces >= 0 && power !== undefined && Number.isSafeInteger(product) && Number.isSafeInteger(sum))
        return sum / power;
    }
    return value * this.#scale + this.#offset;
  }

  /** Exact integer arithmetic with one final rounding, for integers of any size. */
  applyInteger(value: bigint): { readonly value: number; readonly exact: boolean } {
    const scale = this.#exactScale;
    const offset = this.#exactOffset;
    if (!scale || !offset) return { value: Number(value) * this.#scale + this.#offset, exact: isExact(value) };
    const shared = Math.max(scale.places, offset.places);
    const sum =
      value * BigInt(scale.digits) * 10n ** BigInt(shared - scale.places) +
      BigInt(offset.digits) * 10n ** BigInt(shared - offset.places);
    const power = powers[shared];
    if (power !== undefined && Number.isSafeInteger(Number(sum))) return { value: Number(sum) / power, exact: true };
    // Parsing a decimal text rounds once; dividing a rounded number would round twice.
    return { value: Number(`${sum}e-${shared}`), exact: shared === 0 && isExact(sum) };
  }
}

function isExact(value: bigint): boolean {
  const rounded = Number(value);
  return Number.isFinite(rounded) && BigInt(rounded) === value;
}

/** `value` as a decimal. Undefined: its digits exceed the exact range of doubles, or it has too many places. */
function decimal(value: number): Decimal | undefined {
  const [mantissa = "", exponent = "0"] = value.toExponential().split("e");
  const [whole = "", fraction = ""] = mantissa.split(".");
  const places = fraction.length - Number(exponent);
  const digits = Number(whole + fraction) * (places < 0 ? 10 ** -places : 1);
  return Number.isSafeInteger(digits) && places < powers.length ? { digits, places: Math.max(0, places) } : undefined;
}

/** Decimal places of `value`, or −1 if it has more than `mostPlaces`. */
function placesOf(value: number): number {
  for (let places = 0; places <= mostPlaces; places++) {
    const power = powers[places] ?? 1;
    if (Math.round(value * power) / power === value) return places;
  }
  return -1;
}
