// Authenticates requests: by basic authentication, or by a JSON Web Token signed with the key of this data directory.
// Issues these tokens for client credentials (POST /v1/oauth/token).
import { createHmac, randomBytes } from "node:crypto";
import { readFile } from "node:fs/promises";
import type { IncomingMessage, ServerResponse } from "node:http";
import { join } from "node:path";
import { z } from "zod";
import type { Clock, Runtime } from "../../core/runtime.ts";
import { writeAtomically } from "../../lib/files/atomic-file.ts";
import { attempt } from "../../lib/flow/attempt.ts";
import { isLoopback } from "../../lib/network/listen.ts";
import { sameText } from "../../lib/text/without-secrets.ts";
import type { Caller } from "../call/params.ts";
import type { IntegrationOptions, LocalServiceOptions } from "../config/options.ts";
import type { CallAdmission } from "./admission.ts";
import type { CredentialBrake } from "./guess-brake.ts";
import { checkContentType, checkDeclaredBody, continueIfAsked, HttpRefusal, readBody, sendJson } from "./messages.ts";

interface TokenClaims {
  readonly integration: string;
  readonly clientId: string;
  /** Base address that the token is valid for, with a trailing slash. */
  readonly audience: string;
  /** Seconds since the epoch. */
  readonly expiresAt: number;
}

const payload = z.object({ integration: z.string(), azp: z.string(), aud: z.string(), exp: z.number() });

const header = encode({ alg: "HS256", typ: "JWT" });

export class TokenSigner {
  readonly #key: Uint8Array;

  constructor(key: Uint8Array) {
    this.#key = key;
  }

  /** `nowSeconds`: time of issue. */
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
    });
    return `${header}.${body}.${this.#signature(`${header}.${body}`)}`;
  }

  /** The claims of a token of this service; undefined if it is not one. The caller checks the expiry. */
  verify(token: string): TokenClaims | undefined {
    const [head = "", body = "", signature = "", ...rest] = token.split(".");
    // The header must be ours: a token must not choose its own algorithm.
    if (head !== header || rest.length > 0 || !sameText(signature, this.#signature(`${head}.${body}`)))
      return undefined;
    return attempt(() => {
      const { integration, azp, aud, exp } = payload.parse(JSON.parse(Buffer.from(body, "base64url").toString("utf8")));
      return { integration, clientId: azp, audience: aud, expiresAt: exp };
    });
  }

  #signature(text: string): string {
    return createHmac("sha256", this.#key).update(text).digest("base64url");
  }
}

/** The key of a data directory, created on first use. In memory, a new one each time. */
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

/** The caller of a request. Undefined: the `Authorization` header is missing or invalid. */
export type Authenticate = (request: IncomingMessage) => Caller | undefined;

interface AuthenticationParts {
  readonly integrations: readonly IntegrationOptions[];
  readonly signer: TokenSigner;
  readonly clock: Clock;
  /** Address of the service, `http://host:port`. */
  readonly origin: () => string;
}

export function authentication({ integrations, signer, clock, origin }: AuthenticationParts): Authenticate {
  return ({ headers: { authorization, host } }) => {
    const basic = basicCredentials(authorization);
    if (basic) {
      const integration = integrations.find(({ id }) => id === basic.username);
      // Compares even without a password, so that the response time does not reveal existing users.
      const same = sameText(integration?.password?.reveal() ?? "", basic.password);
      return integration?.password && same ? callerOf(integration) : undefined;
    }
    const claims = signer.verify(/^Bearer +(\S+) *$/i.exec(authorization ?? "")?.[1] ?? "");
    if (!claims || claims.expiresAt <= clock.now() / 1e6 || !isOwnAudience(claims.audience, host, origin()))
      return undefined;
    // Tokens become invalid when their client is removed from the configuration.
    const known = integrations.find(({ id, clientId }) => id === claims.integration && clientId === claims.clientId);
    return known && callerOf(known);
  };
}

export function basicCredentials(
  authorization: string | undefined,
): { readonly username: string; readonly password: string } | undefined {
  const token = /^Basic +([A-Za-z0-9+/=_-]+) *$/i.exec(authorization ?? "")?.[1];
  if (token === undefined) return undefined;
  const text = Buffer.from(token, "base64").toString("utf8");
  const colon = text.indexOf(":");
  return colon < 0 ? undefined : { username: text.slice(0, colon), password: text.slice(colon + 1) };
}

function callerOf({ id, grants }: IntegrationOptions): Caller {
  return { integration: id, grants };
}

/** Whether `audience` is the base address of the service. Ignores the scheme, since a proxy may terminate TLS. */
export function isOwnAudience(audience: string, host: string | undefined, origin: string): boolean {
  const url = URL.parse(audience);
  if (!url || !/^https?:$/.test(url.protocol) || url.pathname.replace(/\/$/, "") !== "/v1" || url.search !== "")
    return false;
  if (url.host === host?.toLowerCase()) return true;
  const own = new URL(origin);
  return url.host === own.host || (url.port === own.port && isLoopback(url.hostname) && isLoopback(own.hostname));
}

/** The specification says "about 2 hours"; clients use `expires_in`. */
const tokenSeconds = 7_200;
const maxFormBytes = 16_384;

interface TokenEndpointParts {
  readonly options: LocalServiceOptions;
  readonly runtime: Runtime;
  readonly signer: TokenSigner;
  readonly brake: CredentialBrake;
  readonly admission: CallAdmission;
  /** Address of the service, `http://host:port`. */
  readonly origin: () => string;
}

/** Responds with a token, or rejects with `HttpRefusal`. */
export async function answerTokenRequest(
  { options, runtime, signer, brake, admission, origin }: TokenEndpointParts,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const form = await readForm(request, response);
  const given = clientOf(request, form);
  if (form.get("grant_type") !== "client_credentials")
    throw new HttpRefusal(400, "unsupported_grant_type", "grant_type must be client_credentials");
  const integration = options.integrations.find(({ clientId }) => clientId === given?.clientId);
  const same = sameText(integration?.clientSecret?.reveal() ?? "", given?.clientSecret ?? "");
  if (!given || !integration?.clientSecret || !same) {
    await brake(request, response);
    throw new HttpRefusal(401, "access_denied", "Unauthorized");
  }
  // After checking the secret, so that others cannot use up the client's requests.
  admission.admitToken(integration.id);
  const audience = form.get("audience") ?? "";
  if (!isOwnAudience(audience, request.headers.host, origin()))
    throw new HttpRefusal(401, "access_denied", "Unauthorized");
  const now = Math.floor(runtime.clock.now() / 1e6);
  const claims = {
    integration: integration.id,
    clientId: given.clientId,
    audience: audience.endsWith("/") ? audience : `${audience}/`,
    expiresAt: now + tokenSeconds,
  };
  const token = {
    access_token: signer.sign(claims, now),
    scope: "invoke:integration",
    expires_in: tokenSeconds,
    token_type: "Bearer",
  };
  sendJson(response, 200, JSON.stringify(token));
}

async function readForm(request: IncomingMessage, response: ServerResponse): Promise<URLSearchParams> {
  checkContentType(request, "application/x-www-form-urlencoded");
  checkDeclaredBody(request, maxFormBytes);
  continueIfAsked(request, response);
  return new URLSearchParams((await readBody(request, maxFormBytes)).toString("utf8"));
}

/** From the form, or from a Basic header with form-encoded parts (RFC 6749, 2.3.1). */
function clientOf(
  request: IncomingMessage,
  form: URLSearchParams,
): { readonly clientId: string; readonly clientSecret: string } | undefined {
  const basic = basicCredentials(request.headers.authorization);
  if (basic) return { clientId: formDecoded(basic.username), clientSecret: formDecoded(basic.password) };
  const clientId = form.get("client_id");
  const clientSecret = form.get("client_secret");
  return clientId === null || clientSecret === null ? undefined : { clientId, clientSecret };
}

function formDecoded(text: string): string {
  return attempt(() => decodeURIComponent(text.replaceAll("+", " "))) ?? text;
}
