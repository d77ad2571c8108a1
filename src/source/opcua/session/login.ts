// Guards the login: only verified data of the server may enter the token that the stack builds.
import { createPrivateKey, X509Certificate } from "node:crypto";
import { readFile } from "node:fs/promises";
import type { OPCUAClient as Client, EndpointDescription, UserIdentityInfo } from "node-opcua-client";
import { fileProblem } from "../../../lib/files/paths.ts";
import type { OpcuaOptions } from "../config/options.ts";
import { ownFiles, refusal } from "../stack/failure.ts";
import type { Stack, Ua } from "../stack/stack.ts";
import { isDirect, type LinkOptions, loginNeed } from "./client.ts";
import { chooseEndpoint, loginNeedsCertificate, loginToken, securityOf } from "./endpoint.ts";
import type { SessionRecord } from "./resumption.ts";

type Login = SessionRecord["logins"][number];

interface LoginContext {
  endpoint: EndpointDescription;
  /** The certificate sent with the session; it may differ from the endpoint's. */
  readonly serverCertificate: Uint8Array | null;
}
type Done = (error: Error | null, token?: unknown) => void;

/** A created session, with the server's endpoints at the requested address. */
interface Session {
  readonly serverEndpoints: readonly EndpointDescription[];
}

/** The methods of the stack's client that build the token of each ActivateSession. */
interface TokenMaker {
  _serverEndpoints: EndpointDescription[];
  _activateSession(session: Session, ...rest: readonly unknown[]): unknown;
  createUserIdentityToken(context: LoginContext, identity: unknown, done: Done): void;
}

/**
 * Restricts the client to the token policy of `endpoint`, whatever the server lists later, and encrypts secrets only
 * for a verified certificate. An impostor may send a second certificate, or none, with the session. Without one the
 * stack would send the password in clear text.
 * `former`: the logins of the resumed session. The returned function gives the logins of the last activated session; it
 * gives none if the endpoint itself lists them.
 */
export function guardLogin(
  ua: Ua,
  client: Client,
  endpoint: EndpointDescription,
  link: LinkOptions,
  former: readonly Login[] = [],
): () => readonly Login[] {
  const maker = client as unknown as TokenMaker;
  const make = maker.createUserIdentityToken.bind(client);
  const withToken = (chosen: EndpointDescription) => {
    const token = loginToken(chosen, link.options);
    const checked = new ua.EndpointDescription(chosen);
    checked.userIdentityTokens = token ? [token] : [];
    return checked;
  };
  let checked = withToken(endpoint);
  // The stack requests endpoints only if none are set. Behind a forwarded port, the answer may be empty.
  maker._serverEndpoints = [checked];
  let named = former;
  const activate = maker._activateSession.bind(client);
  maker._activateSession = (session, ...rest) => {
    const logins = isDirect(endpoint) ? sessionLogins(session, endpoint) : [];
    // A resumed session comes without endpoints.
    if (logins.length > 0) named = logins;
    return activate(session, ...rest);
  };
  const check = async (certificate: Uint8Array | null) => {
    // `chooseEndpoint` applies the same password rules as to a listed endpoint.
    if (isDirect(endpoint)) checked = withToken(chooseEndpoint([described(ua, endpoint, named)], link.options));
    await verify(certificate, checked, link);
  };
  maker.createUserIdentityToken = (context, identity, done) => {
    check(context.serverCertificate).then(() => make({ ...context, endpoint: checked }, identity, done), done);
  };
  return () => named;
}

/** The logins that a server sends with a session on this endpoint. Empty if it sends none. */
function sessionLogins({ serverEndpoints }: Session, endpoint: EndpointDescription): readonly Login[] {
  const found = serverEndpoints.find((each) => securityOf(each) === securityOf(endpoint) && !isDirect(each));
  const tokens = found?.userIdentityTokens ?? [];
  return tokens.map(({ policyId, tokenType, securityPolicyUri }) => ({ policyId, tokenType, securityPolicyUri }));
}

/** Login names that many servers use, indexed by token type. */
const usualNames = ["anonymous", "username", "certificate"];

/** A direct endpoint with the logins from the session, or with the usual ones if the server sent none. */
function described(ua: Ua, endpoint: EndpointDescription, named: readonly Login[]): EndpointDescription {
  const usual = usualNames.map((policyId, tokenType) => ({ policyId, tokenType, securityPolicyUri: null }));
  const described = new ua.EndpointDescription(endpoint);
  described.userIdentityTokens = (named.length > 0 ? named : usual).map((login) => new ua.UserTokenPolicy(login));
  return described;
}

async function verify(
  certificate: Uint8Array | null,
  endpoint: EndpointDescription,
  { options, pki }: LinkOptions,
): Promise<void> {
  if (!loginNeedsCertificate(endpoint, options)) return;
  const need = loginNeed(options);
  if (!certificate?.length)
    throw refusal(
      `${options.url}: ${need}, and the server sends none with its session`,
      "the server may be an impostor; compare its certificate, or set allowInsecurePassword: true",
    );
  await pki.verify(certificate, need);
}

/** Reads the credentials. Rejects with `SOURCE_REFUSED` if they are unreadable, do not match, or have expired. */
export async function identityOf(
  { ua }: Stack,
  { username, password, userCertificate }: Pick<OpcuaOptions, "username" | "password" | "userCertificate">,
): Promise<UserIdentityInfo> {
  if (userCertificate) {
    const { certFile, keyFile, keyPassphrase } = userCertificate;
    const certificate = await readFor(certFile, (content) => new X509Certificate(content));
    const passphrase = keyPassphrase?.reveal();
    const lock = passphrase === undefined ? {} : { passphrase };
    const key = await readFor(keyFile, (content) => createPrivateKey({ key: content, ...lock }));
    if (!certificate.checkPrivateKey(key))
      throw refusal(`userCertificate: the key in ${keyFile} is not that of ${certFile}`, ownFiles);
    const ends = new Date(certificate.validTo);
    if (ends.getTime() < Date.now())
      throw refusal(
        `userCertificate: ${certFile} expired on ${ends.toISOString()}`,
        "renew the certificate of the user; if it is still valid, set the clock of this machine",
      );
    return {
      type: ua.UserTokenType.Certificate,
      certificateData: certificate.raw,
      privateKey: key.export({ type: "pkcs8", format: "pem" }).toString(),
    };
  }
  if (username === undefined) return { type: ua.UserTokenType.Anonymous };
  return { type: ua.UserTokenType.UserName, userName: username, password: password?.reveal() ?? "" };
}

async function readFor<T>(file: string, parse: (content: Buffer) => T): Promise<T> {
  try {
    return parse(await readFile(file));
  } catch (error) {
    const unread = error instanceof Error && "syscall" in error;
    const why = unread ? fileProblem(error) : "not a certificate or key in PEM or DER, or an invalid passphrase";
    const hint = "correct userCertificate, or let the user of the agent read the file";
    throw refusal(`userCertificate: ${file}: ${why}`, hint, error);
  }
}
