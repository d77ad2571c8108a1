// Finds out who calls.
import { createHash, timingSafeEqual } from "node:crypto";
import type { Caller } from "./call.ts";
import type { IntegrationOptions } from "./options.ts";

/** The caller of a request with this `Authorization` header, undefined when it names none. */
export type Authenticate = (authorization: string | undefined) => Caller | undefined;

/** Basic authentication: the user name is the Integration ID. */
export function basicAuthentication(integrations: readonly IntegrationOptions[]): Authenticate {
  return (authorization) => {
    const given = basicCredentials(authorization);
    if (!given) return undefined;
    const integration = integrations.find(({ id }) => id === given.username);
    if (!integration?.password || !sameText(integration.password.reveal(), given.password)) return undefined;
    return { integration: integration.id, grants: integration.grants };
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

/** In a time that does not tell where they differ. */
export function sameText(a: string, b: string): boolean {
  const digest = (text: string) => createHash("sha256").update(text).digest();
  return timingSafeEqual(digest(a), digest(b));
}
