// The size of Gorilla's XOR encoding of values (Pelkonen et al., VLDB 2015, 4.1.2), for comparison.

/** The number of bits that `values` take. */
export function gorillaBits(values: Float64Array): number {
  const words = new BigUint64Array(values.buffer, values.byteOffset, values.length);
  let bits = 64;
  let leading = -1;
  let trailing = 0;
  for (let i = 1; i < words.length; i++) {
    const xor = words[i]! ^ words[i - 1]!;
    if (xor === 0n) {
      bits += 1;
      continue;
    }
    const text = xor.toString(2);
    const newLeading = Math.min(31, 64 - text.length);
    const newTrailing = text.length - text.lastIndexOf("1") - 1;
    if (leading >= 0 && newLeading >= leading && newTrailing >= trailing) bits += 2 + 64 - leading - trailing;
    else {
      leading = newLeading;
      trailing = newTrailing;
      bits += 2 + 5 + 6 + 64 - leading - trailing;
    }
  }
  return bits;
}
