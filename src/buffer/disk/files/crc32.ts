// CRC-32 (the polynomial of Ethernet and zlib), the checksum of every header and record. Detects every burst of up to 32
// wrong bits. Check value of "123456789": 0xCBF43926.
import { crc32 as native } from "node:zlib";

/** Checksum of `bytes` from `start` to before `end`, as an unsigned 32-bit integer. */
export function crc32(bytes: Uint8Array, start = 0, end = bytes.length): number {
  return native(bytes.subarray(start, end));
}
