// Bytes that outlast the chunks they came in.

/** A new array with the bytes of both. */
export function joined(a: Uint8Array, b: Uint8Array): Uint8Array {
  const all = new Uint8Array(a.length + b.length);
  all.set(a);
  all.set(b, a.length);
  return all;
}

/** A new array: what `slice` of a `Buffer` gives still is its memory. */
export function copied(bytes: Uint8Array): Uint8Array {
  return new Uint8Array(bytes);
}
