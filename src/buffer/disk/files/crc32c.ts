// CRC-32C (Castagnoli), the checksum of every header and record. Finds every burst of up to 32 wrong bits.
// Check value of "123456789": 0xE3069283. Eight table look-ups take eight bytes at a time (slicing-by-8).

const polynomial = 0x82f63b78;
const tables = makeTables();

function makeTables(): Uint32Array {
  const table = new Uint32Array(8 * 256);
  for (let n = 0; n < 256; n++) {
    let crc = n;
    for (let bit = 0; bit < 8; bit++) crc = crc & 1 ? (crc >>> 1) ^ polynomial : crc >>> 1;
    table[n] = crc >>> 0;
  }
  for (let slice = 1; slice < 8; slice++)
    for (let n = 0; n < 256; n++) {
      const before = table[(slice - 1) * 256 + n]!;
      table[slice * 256 + n] = (before >>> 8) ^ table[before & 0xff]!;
    }
  return table;
}

/** Checksum of `bytes` from `start` to before `end`, as an unsigned 32-bit integer. */
export function crc32c(bytes: Uint8Array, start = 0, end = bytes.length): number {
  let crc = -1;
  let at = start;
  for (; at + 8 <= end; at += 8) {
    const low = crc ^ (bytes[at]! | (bytes[at + 1]! << 8) | (bytes[at + 2]! << 16) | (bytes[at + 3]! << 24));
    crc =
      tables[1792 + (low & 0xff)]! ^
      tables[1536 + ((low >>> 8) & 0xff)]! ^
      tables[1280 + ((low >>> 16) & 0xff)]! ^
      tables[1024 + (low >>> 24)]! ^
      tables[768 + bytes[at + 4]!]! ^
      tables[512 + bytes[at + 5]!]! ^
      tables[256 + bytes[at + 6]!]! ^
      tables[bytes[at + 7]!]!;
  }
  for (; at < end; at++) crc = (crc >>> 8) ^ tables[(crc ^ bytes[at]!) & 0xff]!;
  return ~crc >>> 0;
}
