// Bytes that came in pieces, in one piece.

/** A new array with the bytes of both. */
export function joined(a: Uint8Array, b: Uint8Array): Uint8Array {
  const all = new Uint8Array(a.length + b.length);
  all.set(a);
  all.set(b, a.length);
  return all;
}
