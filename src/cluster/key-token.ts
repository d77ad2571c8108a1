// Encodes names of agents, sources and files as one token of a key or subject. Escapes dots and others.

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

/** The name that `keyToken` has encoded. */
export function tokenName(token: string): string {
  return decodeURIComponent(token.replaceAll("=", "%"));
}
