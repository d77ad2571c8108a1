// Writes numbers as JSON text directly into bytes, with the same result as `JSON.stringify` but without strings.
//
// The text of a value is measured once, when its point enters the window. The result is one byte, its form. The low
// five bits are the length of the text, the high three the number of decimals. There, 7 means that only `String`
// produces the shortest text. The size of a frame is thus a sum of bytes. The value is stored without its decimal
// point, as an integer; division by a power of ten restores it exactly.
//
// Exactness: two different decimal texts of at most 15 significant digits never parse to the same double. Such a text
// is therefore the shortest one for its double.
//
// Times are RFC 3339 texts in UTC with `Z` and as few fractional digits as possible.

/** Length of the text in the low five bits, decimals in the high three. 0: not finite. */
export type NumberForm = number;

const general = 7;
const mostDecimals = 6;
const powers = [1, 10, 100, 1_000, 10_000, 100_000, 1_000_000] as const;
/** Largest value that fits into a signed 32-bit integer. */
const mostSmall = 0x7fff_ffff;
const exactBelow = 1e15;
/** `String` uses an exponent for smaller values. */
const plainFrom = 1e-6;

export function numberForm(value: number): NumberForm {
  const magnitude = Math.abs(value);
  const sign = value < 0 ? 1 : 0;
  if (magnitude < exactBelow) {
    const whole = Math.floor(magnitude);
    if (whole === magnitude) return sign + digits(whole);
    if (magnitude >= plainFrom) {
      for (let decimals = 1; decimals <= mostDecimals; decimals++) {
        const power = powers[decimals]!;
        const scaled = Math.round(magnitude * power);
        if (scaled >= exactBelow) break;
        if (scaled / power === magnitude) return (decimals << 5) | (sign + digits(whole) + 1 + decimals);
      }
    }
  }
  return Number.isFinite(value) ? (general << 5) | String(value).length : 0;
}

export function textLength(form: NumberForm): number {
  return form & 31;
}

/** `value` without its decimal point, for `writeNumber`: 21.5 → 215. */
export function scaledNumber(value: number, form: NumberForm): number {
  const decimals = form >> 5;
  return decimals === general || decimals === 0 ? value : Math.round(value * powers[decimals]!);
}

/** Inverse of `scaledNumber`. */
export function unscaledNumber(scaled: number, form: NumberForm): number {
  const decimals = form >> 5;
  return decimals === general || decimals === 0 ? scaled : scaled / powers[decimals]!;
}

/** Writes a number at `at`, with the length of `textLength`. */
export function writeNumber(bytes: Uint8Array, at: number, scaled: number, form: NumberForm): void {
  const decimals = form >> 5;
  if (decimals === general) {
    const text = String(scaled);
    for (let i = 0; i < text.length; i++) bytes[at + i] = text.charCodeAt(i);
    return;
  }
  if (scaled > mostSmall || scaled < -mostSmall) {
    writeLarge(bytes, at, scaled, form);
    return;
  }
  // Integer division is much faster below 2^31, and larger values are rare.
  let left = scaled | 0;
  if (left < 0) {
    bytes[at] = minus;
    left = -left;
  }
  let i = at + (form & 31) - 1;
  if (decimals > 0) {
    for (let places = decimals; places > 0; places--) {
      const rest = (left / 10) | 0;
      bytes[i--] = zero + left - rest * 10;
      left = rest;
    }
    bytes[i--] = dot;
  }
  while (left >= 10) {
    const rest = (left / 10) | 0;
    bytes[i--] = zero + left - rest * 10;
    left = rest;
  }
  bytes[i] = zero + left;
}

function writeLarge(bytes: Uint8Array, at: number, scaled: number, form: NumberForm): void {
  const decimals = form >> 5;
  const last = at + (form & 31) - 1;
  const point = decimals === 0 ? -1 : last - decimals;
  if (scaled < 0) bytes[at] = minus;
  let left = Math.abs(scaled);
  for (let i = last; i >= at + (scaled < 0 ? 1 : 0); i--) {
    if (i === point) bytes[i] = dot;
    else {
      const rest = Math.floor(left / 10);
      bytes[i] = zero + left - rest * 10;
      left = rest;
    }
  }
}

function digits(whole: number): number {
  if (whole < 10) return 1;
  if (whole < 100) return 2;
  if (whole < 1_000) return 3;
  if (whole < 10_000) return 4;
  if (whole < 100_000) return 5;
  if (whole < 1_000_000) return 6;
  let count = 6;
  for (let left = whole / 1e6; left >= 1; left /= 10) count++;
  return count;
}

const zero = 48;
const dot = 46;
const minus = 45;

const microsPerSecond = 1e6;
const secondsPerDay = 86_400;
/** Start of year 1 and end of 9999: the range of RFC 3339 and of the service. */
const earliest = -62_135_596_800e6;
const end = 253_402_300_800e6;

/** Whether RFC 3339 can represent `micros`, which must be an integer. */
export function isWritableTime(micros: number): boolean {
  return micros >= earliest && micros < end && Number.isInteger(micros);
}

/** Bytes of a time without fraction. */
export const leastTimeLength = 20;

/** Bytes of a time without quotes. */
export function timeLength(micros: number): number {
  const fraction = micros - Math.floor(micros / microsPerSecond) * microsPerSecond;
  if (fraction === 0) return leastTimeLength;
  if (fraction % 1_000 === 0) return fraction % 100_000 === 0 ? 22 : fraction % 10_000 === 0 ? 23 : 24;
  return fraction % 100 === 0 ? 25 : fraction % 10 === 0 ? 26 : 27;
}

/** Writes times. Fastest for ascending ones, since the texts of the last day and second are reused. */
export class TimeWriter {
  readonly #text = Buffer.from("0000-00-00T00:00:00Z", "latin1");
  #day = Number.NaN;
  #second = Number.NaN;

  /** Writes `micros` at `at`, without quotes. Returns the end position. */
  write(bytes: Uint8Array, at: number, micros: number): number {
    const second = Math.floor(micros / microsPerSecond);
    if (second !== this.#second) this.#moveTo(second);
    const text = this.#text;
    for (let i = 0; i < 19; i++) bytes[at + i] = text[i]!;
    let position = at + 19;
    let fraction = micros - second * microsPerSecond;
    if (fraction !== 0) {
      bytes[position++] = dot;
      for (let unit = 100_000; fraction > 0; unit /= 10) {
        const digit = (fraction / unit) | 0;
        bytes[position++] = zero + digit;
        fraction -= digit * unit;
      }
    }
    bytes[position++] = zulu;
    return position;
  }

  #moveTo(second: number): void {
    const day = Math.floor(second / secondsPerDay);
    if (day !== this.#day) {
      this.#text.write(new Date(day * secondsPerDay * 1_000).toISOString().slice(0, 10), 0, "latin1");
      this.#day = day;
    }
    const ofDay = second - day * secondsPerDay;
    this.#pair(11, Math.floor(ofDay / 3_600));
    this.#pair(14, Math.floor(ofDay / 60) % 60);
    this.#pair(17, ofDay % 60);
    this.#second = second;
  }

  #pair(at: number, value: number): void {
    const tens = (value / 10) | 0;
    this.#text[at] = zero + tens;
    this.#text[at + 1] = zero + value - tens * 10;
  }
}

const zulu = 90;
