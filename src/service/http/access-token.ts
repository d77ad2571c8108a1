// Tokens of client credentials: JSON Web Tokens signed with a key of this data directory.
import { createHmac, randomBytes } from "node:crypto";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { writeAtomically } from "../../lib/atomic-file.ts";
import { sameText } from "./same-text.ts";

interface TokenClaims {
  /** Integration ID. */
  readonly integration: string;
  readonly clientId: string;
  /** Base address the token is for, ends in a slash. */
  readonly audience: string;
  /** Seconds since the epoch. */
  readonly expiresAt: number;
}

const payload = z.object({
  iss: z.string(),
  sub: z.string(),
  aud: z.string(),
  azp: z.string(),
  gty: z.literal("client-credentials"),
  iat: z.number(),
  exp: z.number(),
  integration: z.string(),
});

const header = encode({ alg: "HS256", typ: "JWT" });

/** Signs and checks tokens with one key. */
export class TokenSigner {
  readonly #key: Uint8Array;

  constructor(key: Uint8Array) {
    this.#key = key;
  }

  /** `nowSeconds` is when it is issued. */
  sign(claims: TokenClaims, nowSeconds: number): string {
    const body = encode({
      iss: claims.audience,
      sub: `${claims.clientId}@clients`,
      aud: claims.audience,
      azp: claims.clientId,
      gty: "client-credentials",
      iat: nowSeconds,
      exp: claims.expiresAt,
      integration: claims.integration,
    } satisfies z.input<typeof payload>);
    return `${header}.${body}.${this.#signature(`${header}.${body}`)}`;
  }

  /** What a token says, undefined when it is not one of ours. Whether it has expired is the caller's to check. */
  verify(token: string): TokenClaims | undefined {
    const [head = "", body = "", signature = "", ...rest] = token.split(".");
    // Only our own header: a token cannot choose how it is checked.
    if (head !== header || rest.length > 0 || !sameText(signature, this.#signature(`${head}.${body}`)))
      return undefined;
    try {
      const { integration, azp, aud, exp } = payload.parse(JSON.parse(Buffer.from(body, "base64url").toString("utf8")));
      return { integration, clientId: azp, audience: aud, expiresAt: exp };
    } catch {
      return undefined;
    }
  }

  #signature(text: string): string {
    return createHmac("sha256", this.#key).update(text).digest("base64url");
  }
}

/** The key of a data directory, made on first use; in memory a new one each time. */
export async function signingKey(data: string): Promise<Uint8Array> {
  if (data === ":memory:") return randomBytes(32);
  const path = join(data, "token.key");
  const stored = await readFile(path).catch(() => undefined);
  if (stored?.length === 32) return stored;
  const key = randomBytes(32);
  await writeAtomically(path, key);
  return key;
}

function encode(value: object): string {
  return Buffer.from(JSON.stringify(value)).toString("base64url");
}
