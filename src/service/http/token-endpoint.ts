// POST /v1/oauth/token: issues a token for client credentials.
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Runtime } from "../../core/runtime.ts";
import { sameText } from "../../lib/text/without-secrets.ts";
import type { LocalServiceOptions } from "../config/options.ts";
import type { CallAdmission } from "./admission.ts";
import { basicCredentials, isOwnAudience, type TokenSigner } from "./credentials.ts";
import type { CredentialBrake } from "./guess-brake.ts";
import { checkContentType, checkDeclaredBody, continueIfAsked, HttpRefusal, readBody, sendJson } from "./messages.ts";

/** The specification says "about 2 hours"; clients use `expires_in`. */
const tokenSeconds = 7_200;
const maxBodyBytes = 16_384;

interface TokenEndpointParts {
  readonly options: LocalServiceOptions;
  readonly runtime: Runtime;
  readonly signer: TokenSigner;
  readonly brake: CredentialBrake;
  readonly admission: CallAdmission;
  /** Address of the service, `http://host:port`. */
  readonly origin: () => string;
}

/** Responds, or rejects with `HttpRefusal`. */
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
  checkDeclaredBody(request, maxBodyBytes);
  continueIfAsked(request, response);
  return new URLSearchParams((await readBody(request, maxBodyBytes)).toString("utf8"));
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
  try {
    return decodeURIComponent(text.replaceAll("+", " "));
  } catch {
    return text;
  }
}
