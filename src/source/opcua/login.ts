// Guards the login: the stack makes the token from what the server said last, here only what was checked may go into it.
import type { OPCUAClient as Client, EndpointDescription } from "node-opcua-client";
import { AgentError } from "../../core/errors.ts";
import type { LinkOptions } from "./client.ts";
import { loginNeed } from "./discovery.ts";
import { loginNeedsCertificate, loginToken } from "./endpoint.ts";
import type { Ua } from "./stack.ts";

/** What the stack makes a token from. */
interface LoginContext {
  endpoint: EndpointDescription;
  /** As sent with the session; not necessarily the one of the endpoint. */
  readonly serverCertificate: Uint8Array | null;
}
type Done = (error: Error | null, token?: unknown) => void;

/** The part of the stack's client in which it makes the token of each ActivateSession. */
interface TokenMaker {
  _serverEndpoints: EndpointDescription[];
  createUserIdentityToken(context: LoginContext, identity: unknown, done: Done): void;
}

/**
 * From now on the client logs in by the token policy of `endpoint` alone, whatever the server lists later, and gives no secret
 * to a certificate that is not verified. An impostor may send one certificate with its endpoints, and another one, or none,
 * with the session: with none the stack would send the password in clear text.
 */
export function guardLogin(ua: Ua, client: Client, endpoint: EndpointDescription, link: LinkOptions): void {
  const maker = client as unknown as TokenMaker;
  const make = maker.createUserIdentityToken.bind(client);
  const token = loginToken(endpoint, link.options);
  const checked = new ua.EndpointDescription(endpoint);
  checked.userIdentityTokens = token ? [token] : [];
  // Then it does not ask for them again: behind a forwarded port the answer may be empty.
  maker._serverEndpoints = [checked];
  maker.createUserIdentityToken = (context, identity, done) => {
    verify(context.serverCertificate, endpoint, link).then(
      () => make({ ...context, endpoint: checked }, identity, done),
      done,
    );
  };
}

async function verify(
  certificate: Uint8Array | null,
  endpoint: EndpointDescription,
  { options, pki }: LinkOptions,
): Promise<void> {
  if (!loginNeedsCertificate(endpoint, options)) return;
  const need = loginNeed(options);
  if (!certificate?.length)
    throw new AgentError("SOURCE_REFUSED", `${options.url}: ${need}, and the server sends none with its session`);
  await pki.verify(certificate, need);
}
