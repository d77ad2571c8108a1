// Takes a binary document apart from front to back, and never beyond its end. Pure.
import { float16, float32, shortestDecimal } from "../../../lib/shortest-decimal.ts";
import { scalarText } from "./json-path.ts";
import { PayloadError } from "./payload-error.ts";

/** Levels of arrays and maps in each other. */
const maxDepth = 64;

/** Reads numbers with the most significant byte first. Throws `PayloadError` at the end of the bytes. */
export class DocumentReader {
  readonly #format: string;
  readonly #bytes: Uint8Array;
  readonly #view: DataView;
  #at = 0;
  #depth = 0;

  /** `format`: its name, for messages. */
  constructor(format: string, bytes: Uint8Array) {
    this.#format = format;
    this.#bytes = bytes;
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }

  get left(): number {
    return this.#bytes.length - this.#at;
  }

  /** The error that says that the bytes are not of this format. */
  wrong(why: string): PayloadError {
    return new PayloadError(`is not ${this.#format}: ${why}`);
  }

  /** Unsigned, of 1, 2, 4 or 8 bytes. */
  unsigned(width: 1 | 2 | 4 | 8): number | bigint {
    const at = this.#take(width);
    if (width === 1) return this.#view.getUint8(at);
    if (width === 2) return this.#view.getUint16(at);
    return width === 4 ? this.#view.getUint32(at) : narrow(this.#view.getBigUint64(at));
  }

  /** Signed, of 1, 2, 4 or 8 bytes. */
  signed(width: 1 | 2 | 4 | 8): number | bigint {
    const at = this.#take(width);
    if (width === 1) return this.#view.getInt8(at);
    if (width === 2) return this.#view.getInt16(at);
    return width === 4 ? this.#view.getInt32(at) : narrow(this.#view.getBigInt64(at));
  }

  /** The shortest decimal that is the same float. */
  float(width: 2 | 4 | 8): number {
    const at = this.#take(width);
    if (width === 2) return shortestDecimal(this.#view.getFloat16(at), float16);
    return width === 4 ? shortestDecimal(this.#view.getFloat32(at), float32) : this.#view.getFloat64(at);
  }

  /** A view, not a copy. */
  bytes(length: number | bigint): Uint8Array {
    const at = this.#take(Number(length));
    return this.#bytes.subarray(at, this.#at);
  }

  text(length: number | bigint): string {
    try {
      return utf8.decode(this.bytes(length));
    } catch (error) {
      throw error instanceof PayloadError ? error : this.wrong("a text that is not UTF-8");
    }
  }

  /** Elements of an array, as many as `length` says or until `ends` does. */
  list<T>(length: number | bigint, next: () => T, ends: () => boolean = () => false): T[] {
    return this.#nested(() => {
      const elements: T[] = [];
      while (elements.length < length && !ends()) elements.push(next());
      return elements;
    });
  }

  /** Members of a map. A key that is no text becomes one. */
  map(length: number | bigint, next: () => unknown, ends: () => boolean = () => false): Record<string, unknown> {
    const pairs = this.list(length, () => [this.#key(next()), next()] as const, ends);
    return Object.fromEntries(pairs);
  }

  #key(key: unknown): string {
    const text = scalarText(key);
    if (text === undefined) throw this.wrong("a key that is no text");
    return text;
  }

  #nested<T>(read: () => T): T {
    if (++this.#depth > maxDepth) throw new PayloadError(`is nested deeper than ${maxDepth} levels`);
    const made = read();
    this.#depth--;
    return made;
  }

  #take(count: number): number {
    if (count > this.left) throw this.wrong("it ends in the middle");
    const at = this.#at;
    this.#at += count;
    return at;
  }
}

const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** As a number where that is exact. */
export function narrow(value: bigint): number | bigint {
  return value >= Number.MIN_SAFE_INTEGER && value <= Number.MAX_SAFE_INTEGER ? Number(value) : value;
}
