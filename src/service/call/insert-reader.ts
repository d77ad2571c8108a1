// Reads a large insert from its bytes directly into columns, without a text of megabytes or a million objects. For
// unusual requests it returns undefined, and JSON.parse and `check-frame.ts` decide.
import { isInputId } from "../../core/point.ts";
import { parseTimestamp } from "../../wire/timestamp.ts";
import {
  closeBrace,
  closeBracket,
  colon,
  comma,
  openBrace,
  openBracket,
  quote,
  skipSpace,
  skipValue,
} from "./json-bytes.ts";

/** The data frame of a request. Times and values are valid and lengths match. The next `readInsert` invalidates it. */
export class ColumnFrame {
  /** Microseconds since the epoch, in the order of the request. */
  readonly times: Float64Array;
  /** NaN stands for null. */
  readonly series: ReadonlyMap<string, Float64Array>;

  constructor(times: Float64Array, series: ReadonlyMap<string, Float64Array>) {
    this.times = times;
    this.series = series;
  }
}

/** The request with a `ColumnFrame` in `params.data`. Undefined: not supported. */
export function readInsert(body: Buffer): Readonly<Record<string, unknown>> | undefined {
  forgetColumns();
  try {
    return new Reader(body).request();
  } catch (error) {
    if (error === notUnderstood) return undefined;
    throw error;
  }
}

const notUnderstood = new Error("not understood");
/** Most bytes of a member other than the frame; it is parsed by JSON.parse. */
const maxOther = 65_536;

const minus = 0x2d;
const dot = 0x2e;
const zero = 0x30;
const powersOfTen = Float64Array.from({ length: 23 }, (_, power) => 10 ** power);

class Reader {
  readonly #body: Buffer;
  #at = 0;

  constructor(body: Buffer) {
    this.#body = body;
  }

  request(): Readonly<Record<string, unknown>> {
    const request = this.#members((key) => (key === "params" ? this.#params() : this.#other()));
    this.#space();
    if (this.#at !== this.#body.length) throw notUnderstood;
    return request;
  }

  #params(): object {
    return this.#members((key) => (key === "data" ? this.#frame() : this.#other()));
  }

  #frame(): ColumnFrame {
    const { times, series, ...others } = this.#members((key) =>
      key === "times" ? this.#times() : key === "series" ? this.#series() : this.#other(),
    );
    if (!(times instanceof Float64Array && series instanceof Map) || Object.keys(others).length > 0)
      throw notUnderstood;
    for (const values of series.values()) if (values.length !== times.length) throw notUnderstood;
    return new ColumnFrame(times, series);
  }

  /** An object whose values `read` parses. */
  #members(read: (key: string) => unknown): Record<string, unknown> {
    const members: Record<string, unknown> = {};
    this.#each(openBrace, closeBrace, () => {
      const key = this.#string();
      this.#expect(colon);
      this.#space();
      if (Object.hasOwn(members, key) || key === "__proto__") throw notUnderstood;
      members[key] = read(key);
    });
    return members;
  }

  #times(): Float64Array {
    const times = new Column();
    this.#each(openBracket, closeBracket, () => {
      const time = parseTimestamp(this.#string());
      if (time === undefined || !Number.isSafeInteger(time)) throw notUnderstood;
      times.push(time);
    });
    return times.whole();
  }

  #series(): ReadonlyMap<string, Float64Array> {
    const series = new Map<string, Float64Array>();
    this.#each(openBrace, closeBrace, () => {
      const key = this.#string();
      this.#expect(colon);
      if (!isInputId(key) || series.has(key)) throw notUnderstood;
      const values = new Column();
      this.#each(openBracket, closeBracket, () => values.push(this.#cell()));
      series.set(key, values.whole());
    });
    return series;
  }

  /** A number, or NaN for null. */
  #cell(): number {
    const body = this.#body;
    const start = this.#at;
    let at = start;
    if (body[at] === 0x6e) {
      if (body[at + 1] !== 0x75 || body[at + 2] !== 0x6c || body[at + 3] !== 0x6c) throw notUnderstood;
      this.#at = at + 4;
      return Number.NaN;
    }
    const negative = body[at] === minus;
    if (negative) at++;
    const first = at;
    let mantissa = 0;
    for (let digit = (body[at] ?? 0) - zero; digit >= 0 && digit <= 9; digit = (body[++at] ?? 0) - zero)
      mantissa = mantissa * 10 + digit;
    // A number begins with a digit. A leading 0 must be the only digit before the dot.
    if (at === first || (body[first] === zero && at > first + 1)) throw notUnderstood;
    let scale = 0;
    if (body[at] === dot) {
      const fraction = ++at;
      for (let digit = (body[at] ?? 0) - zero; digit >= 0 && digit <= 9; digit = (body[++at] ?? 0) - zero)
        mantissa = mantissa * 10 + digit;
      scale = at - fraction;
      if (scale === 0) throw notUnderstood;
    }
    const exponent = body[at] === 0x65 || body[at] === 0x45;
    // Mantissa and divisor are exact, so the quotient is rounded once, as in JSON.parse.
    if (!exponent && mantissa <= Number.MAX_SAFE_INTEGER && scale < powersOfTen.length) {
      this.#at = at;
      const value = scale === 0 ? mantissa : mantissa / powersOfTen[scale]!;
      return negative ? -value : value;
    }
    if (exponent) {
      at++;
      if (body[at] === minus || body[at] === 0x2b) at++;
      const digits = at;
      while ((body[at] ?? 0) >= zero && (body[at] ?? 0) <= 0x39) at++;
      if (at === digits) throw notUnderstood;
    }
    this.#at = at;
    const value = Number(body.toString("latin1", start, at));
    if (!Number.isFinite(value)) throw notUnderstood;
    return value;
  }

  /** Comma-separated elements between `open` and `close`. */
  #each(open: number, close: number, element: () => void): void {
    this.#expect(open);
    this.#space();
    if (this.#body[this.#at] === close) {
      this.#at++;
      return;
    }
    for (;;) {
      this.#space();
      element();
      this.#space();
      const byte = this.#body[this.#at++];
      if (byte === close) return;
      if (byte !== comma) throw notUnderstood;
    }
  }

  /** An ASCII string without escapes. */
  #string(): string {
    if (this.#body[this.#at] !== quote) throw notUnderstood;
    const start = ++this.#at;
    for (let byte = this.#body[start]; byte !== quote; byte = this.#body[++this.#at])
      if (byte === undefined || byte < 0x20 || byte > 0x7e || byte === 0x5c) throw notUnderstood;
    return this.#body.toString("latin1", start, this.#at++);
  }

  /** Any small value, parsed by JSON.parse. */
  #other(): unknown {
    const start = this.#at;
    const end = skipValue(this.#body, start);
    if (end > this.#body.length || end - start > maxOther) throw notUnderstood;
    this.#at = end;
    try {
      return JSON.parse(this.#body.toString("utf8", start, end));
    } catch {
      throw notUnderstood;
    }
  }

  #expect(byte: number): void {
    this.#space();
    if (this.#body[this.#at++] !== byte) throw notUnderstood;
  }

  #space(): void {
    this.#at = skipSpace(this.#body, this.#at);
  }
}

/** Memory for the columns of an insert, reused by the next insert. */
const slabs: Float64Array[] = [];
const slabValues = 2 ** 16;
/** 16 MiB, enough for a full insert of three-digit numbers. Further slabs are released. */
const keptSlabs = 32;
/** Start of the next column. */
let slab = 0;
let start = 0;

function forgetColumns(): void {
  slab = start = 0;
  slabs.splice(keptSlabs);
  for (const [i, { length }] of slabs.entries()) if (length > slabValues) slabs.splice(i);
}

/** A growing sequence of numbers in a slab. */
class Column {
  #values = (slabs[slab] ??= new Float64Array(slabValues));
  #at = start;

  push(value: number): void {
    if (this.#at === this.#values.length) this.#move();
    this.#values[this.#at++] = value;
  }

  whole(): Float64Array {
    const from = start;
    start = this.#at;
    return this.#values.subarray(from, start);
  }

  /** Moves to the next slab, with room for at least twice as many. */
  #move(): void {
    const written = this.#values.subarray(start);
    const next = slabs[++slab];
    this.#values =
      next && next.length > written.length ? next : new Float64Array(Math.max(slabValues, written.length * 2));
    slabs[slab] = this.#values;
    this.#values.set(written);
    start = 0;
    this.#at = written.length;
  }
}
