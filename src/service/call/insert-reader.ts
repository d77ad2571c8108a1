// Reads a large insert from its bytes directly into blocks, without a text of megabytes or a million objects. For
// unusual requests it returns undefined, and JSON.parse and `check-frame.ts` decide.
import { isInputId } from "../../core/point.ts";
import { type Steps, stepWork } from "../../lib/flow/in-slices.ts";
import { parseTimestamp } from "../../wire/timestamp.ts";
import { type EncodedBlock, RunEncoder } from "../store/point-run.ts";
import { EncodedFrame, FrameTimes } from "./check-frame.ts";
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

/** The request with an `EncodedFrame` in `params.data`. Undefined: not supported. Reads one request at a time. */
export function* readInsert(body: Buffer): Steps<Readonly<Record<string, unknown>> | undefined> {
  encoder.reset();
  try {
    return yield* new Reader(body).request();
  } catch (error) {
    if (error === notUnderstood) return undefined;
    throw error;
  } finally {
    if (column.length > keptValues) column = new Float64Array(keptValues);
  }
}

const notUnderstood = new Error("not understood");
/** Most bytes of a member other than the frame; it is parsed by JSON.parse. */
const maxOther = 65_536;
/** Bytes that are read and encoded in `stepWork`. */
const bytesPerStep = 65_536;

// Memory that is reused by the next insert.
const encoder = new RunEncoder();
const keptValues = 2 ** 16;
let column = new Float64Array(keptValues);

const minus = 0x2d;
const dot = 0x2e;
const zero = 0x30;
const powersOfTen = Float64Array.from({ length: 23 }, (_, power) => 10 ** power);

class Reader {
  readonly #body: Buffer;
  #at = 0;
  #stepEnd = bytesPerStep;
  #times: FrameTimes | undefined;

  constructor(body: Buffer) {
    this.#body = body;
  }

  *request(): Steps<Readonly<Record<string, unknown>>> {
    const request = yield* this.#members((key) => (key === "params" ? this.#params() : { value: this.#other() }));
    this.#space();
    if (this.#at !== this.#body.length) throw notUnderstood;
    return request;
  }

  #params(): Steps<object> {
    return this.#members((key) => (key === "data" ? this.#frame() : { value: this.#other() }));
  }

  *#frame(): Steps<EncodedFrame> {
    let seriesAt = this.#at;
    const {
      times: _,
      series,
      ...others
    } = yield* this.#members((key) => {
      if (key === "times") return this.#readTimes();
      if (key !== "series") return { value: this.#other() };
      seriesAt = this.#at;
      return this.#times ? this.#series(this.#times) : { value: this.#skip() };
    });
    if (!this.#times || series === undefined || Object.keys(others).length > 0) throw notUnderstood;
    if (series instanceof EncodedFrame) return series;
    // The series precede the times.
    const end = this.#at;
    this.#at = seriesAt;
    const read = yield* this.#series(this.#times);
    if (this.#at !== series) throw notUnderstood;
    this.#at = end;
    return read;
  }

  /** An object whose values `read` parses. */
  *#members(read: (key: string) => Steps<unknown> | { readonly value: unknown }): Steps<Record<string, unknown>> {
    const members: Record<string, unknown> = {};
    for (let more = this.#opens(openBrace, closeBrace); more; more = this.#continues(closeBrace)) {
      const key = this.#string();
      this.#expect(colon);
      this.#space();
      if (Object.hasOwn(members, key) || key === "__proto__") throw notUnderstood;
      const member = read(key);
      members[key] = "value" in member ? member.value : yield* member;
    }
    return members;
  }

  *#readTimes(): Steps<FrameTimes> {
    const values = yield* this.#column(() => {
      const time = parseTimestamp(this.#string());
      if (time === undefined || !Number.isSafeInteger(time)) throw notUnderstood;
      return time;
    });
    return (this.#times = new FrameTimes(values.slice()));
  }

  *#series(times: FrameTimes): Steps<EncodedFrame> {
    const series = new Map<string, readonly EncodedBlock[]>();
    const cell = () => this.#cell();
    for (let more = this.#opens(openBrace, closeBrace); more; more = this.#continues(closeBrace)) {
      const key = this.#string();
      this.#expect(colon);
      if (!isInputId(key) || series.has(key)) throw notUnderstood;
      const values = yield* this.#column(cell);
      if (values.length !== times.length) throw notUnderstood;
      series.set(key, encoder.encode(times.columnsOf(values)));
    }
    return new EncodedFrame(series);
  }

  /** An array of numbers that `read` parses. The next column overwrites the result. */
  *#column(read: () => number): Steps<Float64Array> {
    let count = 0;
    for (let more = this.#opens(openBracket, closeBracket); more; more = this.#continues(closeBracket)) {
      if (count === column.length) {
        const longer = new Float64Array(2 * count);
        longer.set(column);
        column = longer;
      }
      column[count++] = read();
      if (this.#at < this.#stepEnd) continue;
      this.#stepEnd = this.#at + bytesPerStep;
      yield stepWork;
    }
    return column.subarray(0, count);
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

  /** Whether there is an element after the opening bracket. */
  #opens(open: number, close: number): boolean {
    this.#expect(open);
    this.#space();
    if (this.#body[this.#at] !== close) return true;
    this.#at++;
    return false;
  }

  /** Whether an element follows: after a comma, not after the closing bracket. */
  #continues(close: number): boolean {
    this.#space();
    const byte = this.#body[this.#at++];
    if (byte === close) return false;
    if (byte !== comma) throw notUnderstood;
    this.#space();
    return true;
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
    const end = this.#skip();
    if (end - start > maxOther) throw notUnderstood;
    try {
      return JSON.parse(this.#body.toString("utf8", start, end));
    } catch {
      throw notUnderstood;
    }
  }

  /** Returns the position after any value. */
  #skip(): number {
    this.#at = skipValue(this.#body, this.#at);
    if (this.#at > this.#body.length) throw notUnderstood;
    return this.#at;
  }

  #expect(byte: number): void {
    this.#space();
    if (this.#body[this.#at++] !== byte) throw notUnderstood;
  }

  #space(): void {
    this.#at = skipSpace(this.#body, this.#at);
  }
}
