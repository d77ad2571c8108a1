// POST /v1/oauth/token: client credentials in, a token out.
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Runtime } from "../../core/runtime.ts";
import type { LocalServiceOptions } from "../config/options.ts";
import type { TokenSigner } from "./access-token.ts";
import { canonicalAudience, isOwnAudience } from "./audience.ts";
import { basicCredentials } from "./authenticate.ts";
import type { CredentialRefusals } from "./credential-refusals.ts";
import { HttpRefusal, send } from "./http-answer.ts";
import { continueIfAsked } from "./listener.ts";
import { RateGate } from "./rate-gate.ts";
import { checkDeclaredBody, readBody } from "./request-body.ts";
import { sameText } from "./same-text.ts";

/** "About 2 hours"; clients go by `expires_in`. */
const tokenSeconds = 7_200;
/** A token lasts two hours, and a public client may need two requests for one. */
const requestsPerMinute = 20;
const maxBodyBytes = 16_384;

interface TokenEndpointParts {
  readonly options: LocalServiceOptions;
  readonly runtime: Runtime;
  readonly signer: TokenSigner;
  readonly refusals: CredentialRefusals;
  /** Address the service listens on, `http://host:port`. */
  readonly origin: () => string;
}

export class TokenEndpoint {
  readonly #parts: TokenEndpointParts;
  readonly #gates = new Map<string, RateGate>();

  constructor(parts: TokenEndpointParts) {
    this.#parts = parts;
  }

  /** Answers, or rejects with `HttpRefusal`. */
  async handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { runtime, signer, refusals, origin } = this.#parts;
    const form = await readForm(request, response);
    const given = clientOf(request, form);
    if (form.get("grant_type") !== "client_credentials")
      throw new HttpRefusal(400, "unsupported_grant_type", "grant_type must be client_credentials");
    const integration = this.#parts.options.integrations.find(({ clientId }) => clientId === given?.clientId);
    const same = sameText(integration?.clientSecret?.reveal() ?? "", given?.clientSecret ?? "");
    if (!given || !integration?.clientSecret || !same) {
      await refusals.turn(request, response);
      throw new HttpRefusal(401, "access_denied", "Unauthorized");
    }
    // After the secret: others cannot use up the requests of the right client.
    this.#admit(integration.id);
    const audience = form.get("audience") ?? "";
    if (!isOwnAudience(audience, request.headers.host, origin()))
      throw new HttpRefusal(401, "access_denied", "Unauthorized");
    const now = Math.floor(runtime.clock.now() / 1e6);
    const claims = {
      integration: integration.id,
      clientId: given.clientId,
      audience: canonicalAudience(audience),
      expiresAt: now + tokenSeconds,
    };
    send(
      response,
      200,
      { "content-type": "application/json" },
      JSON.stringify({
        access_token: signer.sign(claims, now),
        scope: "invoke:integration",
        expires_in: tokenSeconds,
        token_type: "Bearer",
      }),
    );
  }

  #admit(integration: string): void {
    if (this.#parts.options.throttle === "off") return;
    let gate = this.#gates.get(integration);
    if (!gate)
      this.#gates.set(integration, (gate = new RateGate(this.#parts.runtime.clock, requestsPerMinute, 60_000)));
    if (!gate.tryStart())
      throw new HttpRefusal(429, "too_many_requests", "tokens are to be kept until they expire", {
        "retry-after": String(Math.ceil(gate.waitMs() / 1_000)),
      });
  }
}

async function readForm(request: IncomingMessage, response: ServerResponse): Promise<URLSearchParams> {
  const type = (request.headers["content-type"] ?? "").split(";")[0]?.trim().toLowerCase();
  if (type !== "application/x-www-form-urlencoded")
    throw new HttpRefusal(415, "unsupported_media_type", "content-type must be application/x-www-form-urlencoded");
  checkDeclaredBody(request, maxBodyBytes);
  continueIfAsked(request, response);
  return new URLSearchParams((await readBody(request, maxBodyBytes, () => maxBodyBytes)).toString("utf8"));
}

/** From the form, or from an HTTP Basic header, where both parts are form-encoded (RFC 6749, 2.3.1). */
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
  try {
    return decodeURIComponent(text.replaceAll("+", " "));
  } catch {
    return text;
  }
}
