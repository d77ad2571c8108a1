// Reads the wire format of Protocol Buffers, as much of it as Sparkplug needs. Pure.
import { float32, shortestDecimal } from "../../../lib/shortest-decimal.ts";
import { PayloadError } from "../decoders/payload-error.ts";

/** One field as it stands in a message: a number for varints and fixed widths, bytes for everything with a length. */
interface Field {
  readonly number: number;
  /** Integers beyond 2^53 come as bigints; of the fixed widths the raw bits. */
  readonly value: number | bigint | Uint8Array;
}

/** Fields in their order. Throws `PayloadError` when the bytes are no message. */
export function* readFields(bytes: Uint8Array): Generator<Field> {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  let at = 0;
  const take = (count: number) => {
    const start = at;
    at += count;
    if (at > bytes.length) throw new PayloadError("is not Sparkplug B: it ends in the middle");
    return start;
  };
  const varint = (): number | bigint => {
    let small = 0;
    for (let i = 0; i < 7; i++) {
      const byte = bytes[take(1)] ?? 0;
      small += (byte & 0x7f) * 2 ** (7 * i);
      if (byte < 0x80) return small;
    }
    let large = BigInt(small);
    for (let i = 7n; i < 10n; i++) {
      const byte = bytes[take(1)] ?? 0;
      large |= BigInt(byte & 0x7f) << (7n * i);
      if (byte < 0x80) return large <= Number.MAX_SAFE_INTEGER ? Number(large) : BigInt.asUintN(64, large);
    }
    throw new PayloadError("is not Sparkplug B: a number has too many bytes");
  };
  while (at < bytes.length) {
    const key = Number(varint());
    const number = Math.floor(key / 8);
    switch (key % 8) {
      case 0:
        yield { number, value: varint() };
        break;
      case 1:
        yield { number, value: view.getBigUint64(take(8), true) };
        break;
      case 2: {
        const length = Number(varint());
        const start = take(length);
        yield { number, value: bytes.subarray(start, start + length) };
        break;
      }
      case 5:
        yield { number, value: view.getUint32(take(4), true) };
        break;
      default:
        throw new PayloadError("is not Sparkplug B: unknown kind of field");
    }
  }
}

/** The bits of a 32-bit float as the number that was meant: 0.1, not 0.10000000149011612. */
export function float32OfBits(bits: number): number {
  scratch.setUint32(0, bits);
  return shortestDecimal(scratch.getFloat32(0), float32);
}

/** The bits of a 64-bit float as a number. */
export function float64OfBits(bits: bigint): number {
  scratch.setBigUint64(0, bits);
  return scratch.getFloat64(0);
}

// Written and read within one call.
const scratch = new DataView(new ArrayBuffer(8));
