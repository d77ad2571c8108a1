// value × scale + offset without binary dust: 0.1 × 3 is 0.3. Pure.
//
// Scales and offsets are decimals, as people write them: digits / 10^places. Where the value is a decimal of few
// places too, everything is counted in whole numbers below 2^53, which doubles hold exactly, and divided once by a
// power of ten, which rounds correctly. Anything else (a float32 with its noise, a scale of 1/3) is plain arithmetic.

/** `digits / 10^places`, both whole; places from 0. */
interface Decimal {
  readonly digits: number;
  readonly places: number;
}

const powers = Array.from({ length: 23 }, (_, i) => 10 ** i);
/** More places than a measured value has; beyond it is noise. */
const mostPlaces = 9;

export class Linear {
  readonly #scale: number;
  readonly #offset: number;
  readonly #exactScale: Decimal | undefined;
  readonly #exactOffset: Decimal | undefined;
  /** Nothing to do. */
  readonly identity: boolean;

  constructor(scale: number, offset: number) {
    this.#scale = scale;
    this.#offset = offset;
    this.#exactScale = decimal(scale);
    this.#exactOffset = decimal(offset);
    this.identity = scale === 1 && offset === 0;
  }

  apply(value: number): number {
    if (this.identity) return value;
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

  /** As exact as a double can be, however large the integer: counted in whole numbers and rounded once. */
  applyInteger(value: bigint): { readonly value: number; readonly exact: boolean } {
    const scale = this.#exactScale;
    const offset = this.#exactOffset;
    if (!scale || !offset) return { value: Number(value) * this.#scale + this.#offset, exact: isExact(value) };
    const shared = Math.max(scale.places, offset.places);
    const sum =
      value * BigInt(scale.digits) * 10n ** BigInt(shared - scale.places) +
      BigInt(offset.digits) * 10n ** BigInt(shared - offset.places);
    const safe = sum >= -maxSafe && sum <= maxSafe;
    const power = powers[shared];
    if (safe && power !== undefined) return { value: Number(sum) / power, exact: true };
    // Reading a decimal text rounds once; dividing a rounded number would round twice.
    return { value: Number(`${sum}e-${shared}`), exact: shared === 0 ? isExact(sum) : false };
  }
}

const maxSafe = BigInt(Number.MAX_SAFE_INTEGER);

function isExact(value: bigint): boolean {
  const rounded = Number(value);
  return Number.isFinite(rounded) && BigInt(rounded) === value;
}

/** The decimal that prints as `value`, if it is one of whole numbers that doubles hold. */
function decimal(value: number): Decimal | undefined {
  const [mantissa = "", exponent = "0"] = value.toExponential().split("e");
  const [whole = "", fraction = ""] = mantissa.split(".");
  const places = fraction.length - Number(exponent);
  const digits = Number(whole + fraction) * (places < 0 ? 10 ** -places : 1);
  return Number.isSafeInteger(digits) && places < powers.length ? { digits, places: Math.max(0, places) } : undefined;
}

/** How many places `value` has as a decimal, or −1 when there are too many. */
function placesOf(value: number): number {
  for (let places = 0; places <= mostPlaces; places++) {
    const power = powers[places] ?? 1;
    if (Math.round(value * power) / power === value) return places;
  }
  return -1;
}
