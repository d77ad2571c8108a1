// Finds out who calls: basic authentication, or a token that was issued here. Answers wrong secrets, slowly if there are many.
import type { IncomingMessage } from "node:http";
import type { Clock } from "../../core/runtime.ts";
import type { Caller } from "../call/call.ts";
import type { IntegrationOptions } from "../config/options.ts";
import type { TokenSigner } from "./access-token.ts";
import { isOwnAudience } from "./audience.ts";
import { sameText } from "./same-text.ts";

/** The caller of a request, undefined when its `Authorization` header names none. */
export type Authenticate = (request: IncomingMessage) => Caller | undefined;

interface AuthenticationParts {
  readonly integrations: readonly IntegrationOptions[];
  readonly signer: TokenSigner;
  readonly clock: Clock;
  /** Address the service listens on, `http://host:port`. */
  readonly origin: () => string;
}

export function authentication({ integrations, signer, clock, origin }: AuthenticationParts): Authenticate {
  return ({ headers: { authorization, host } }) => {
    const basic = basicCredentials(authorization);
    if (basic) {
      const integration = integrations.find(({ id }) => id === basic.username);
      // Also compares where there is no password, so that the time of the answer does not tell which users exist.
      const same = sameText(integration?.password?.reveal() ?? "", basic.password);
      return integration?.password && same ? callerOf(integration) : undefined;
    }
    const claims = signer.verify(/^Bearer +(\S+) *$/i.exec(authorization ?? "")?.[1] ?? "");
    if (!claims || claims.expiresAt <= clock.now() / 1e6 || !isOwnAudience(claims.audience, host, origin()))
      return undefined;
    // Credentials that are no longer configured do not outlive the restart that removed them.
    const integration = integrations.find(
      ({ id, clientId }) => id === claims.integration && clientId === claims.clientId,
    );
    return integration && callerOf(integration);
  };
}

/** User name and password of an `Authorization: Basic` header. */
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
