// Times as RFC 3339 text, straight into bytes: UTC, `Z`, and no more digits of a second than are needed.

const microsPerSecond = 1e6;
const secondsPerDay = 86_400;
/** 0001-01-01T00:00:00Z and the end of 9999: what RFC 3339 can write and the service can store. */
const earliest = -62_135_596_800e6;
const end = 253_402_300_800e6;

/** Whether `micros` is a whole number of microseconds that RFC 3339 can write. */
export function isWritableTime(micros: number): boolean {
  return micros >= earliest && micros < end && Number.isInteger(micros);
}

/** Bytes of the text of a whole second. */
export const leastTimeLength = 20;

/** Bytes of the text, without quotes. */
export function timeLength(micros: number): number {
  const fraction = micros - Math.floor(micros / microsPerSecond) * microsPerSecond;
  if (fraction === 0) return leastTimeLength;
  if (fraction % 1_000 === 0) return fraction % 100_000 === 0 ? 22 : fraction % 10_000 === 0 ? 23 : 24;
  return fraction % 100 === 0 ? 25 : fraction % 10 === 0 ? 26 : 27;
}

/** Writes times one after the other. Ascending times are fastest: text of the day and the second before is used again. */
export class TimeWriter {
  readonly #text = Buffer.from("0000-00-00T00:00:00Z", "latin1");
  #day = Number.NaN;
  #second = Number.NaN;

  /** Writes `micros` at `at`, without quotes; returns where it ends. */
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

const zero = 48;
const dot = 46;
const zulu = 90;
