// Encodes names of agents and sources as one token of a key or subject. Escapes dots and others.

const plain = /^[A-Za-z0-9_-]$/;

/** Different names give different tokens: `north.gw1` → `north=2egw1`. */
export function keyToken(name: string): string {
  const bytes = [...Buffer.from(name, "utf8")];
  return bytes
    .map((byte) => {
      const sign = String.fromCodePoint(byte);
      return plain.test(sign) ? sign : `=${byte.toString(16).padStart(2, "0")}`;
    })
    .join("");
}
