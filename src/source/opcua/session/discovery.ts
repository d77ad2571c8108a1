// Lists the endpoints of a server and selects the one to use.
import { createHash, X509Certificate } from "node:crypto";
import { readFile } from "node:fs/promises";
import type { EndpointDescription, OPCUAClient } from "node-opcua-client";
import { AgentError } from "../../../core/errors.ts";
import { uriOf } from "../certificates/trust.ts";
import type { OpcuaOptions } from "../config/options.ts";
import type { Stack, Ua } from "../stack/stack.ts";
import { assertReachable, bounded, createClient, hangUp, type LinkOptions } from "./client.ts";
import { chooseEndpoint, loginNeedsCertificate, modes, policyUri, securityOf } from "./endpoint.ts";

/** Lists the endpoints over a channel without security, as the protocol intends: they are public. */
export async function discover(stack: Stack, link: LinkOptions, signal: AbortSignal): Promise<EndpointDescription[]> {
  const { url, timeout } = link.options;
  const client = createClient(stack, link, undefined);
  try {
    return await bounded(`asking ${url} for its endpoints`, timeout, signal, async () => {
      await client.connect(url);
      const listed = await client.getEndpoints();
      return listed.length > 0 ? listed : await endpointsElsewhere(client);
    });
  } finally {
    await hangUp(client);
  }
}

/** Asks for the endpoints at the server's own addresses: behind a forwarded port, some servers list none. */
async function endpointsElsewhere(client: OPCUAClient): Promise<EndpointDescription[]> {
  const servers = await client.findServers().catch(() => []);
  const urls = new Set(servers.flatMap(({ discoveryUrls }) => discoveryUrls ?? []));
  for (const endpointUrl of urls) {
    if (!endpointUrl?.startsWith("opc.tcp://")) continue;
    const listed = await client.getEndpoints({ endpointUrl });
    if (listed.length > 0) return listed;
  }
  return [];
}

/** Identifies server, user, security and certificate, which a session on the server belongs to. */
export function connectionDigest(link: LinkOptions, endpoint: EndpointDescription): string {
  // Without security the server does not verify the certificate.
  return userDigest(link, endpoint, endpoint.securityMode === noSecurity ? "" : link.pki.thumbprint);
}

/** Identifies server, user and security: the subscriptions that a session may take over from another one. */
export function userDigest({ options }: LinkOptions, endpoint: EndpointDescription, certificate = ""): string {
  const user = options.username ?? options.userCertificate?.certFile ?? "";
  const parts = [options.url, user, securityOf(endpoint), certificate];
  return createHash("sha256").update(JSON.stringify(parts)).digest("hex");
}

/** Selects a listed endpoint, else the configured one. Rejects like `chooseEndpoint` and `verifyServer`. */
export async function findEndpoint(stack: Stack, link: LinkOptions, signal: AbortSignal): Promise<EndpointDescription> {
  const { options } = link;
  await assertReachable(options.url, options.timeout, signal);
  const listed = await discover(stack, link, signal).catch((error: unknown) => {
    signal.throwIfAborted();
    // Some servers do not answer without security. If the mode is none, there is no other way to connect.
    if (options.security?.serverCertificate === undefined) throw error;
    return [];
  });
  const direct = listed.length === 0 ? await directEndpoint(stack.ua, options) : undefined;
  const endpoint = direct ?? chooseEndpoint(listed, options);
  await verifyServer(endpoint, link);
  return endpoint;
}

/**
 * Verifies the certificate of an endpoint if the channel or the login depends on it. Rejects with `SOURCE_PROTOCOL` if
 * the server sends no certificate, else like `Pki.verify`.
 */
export async function verifyServer(
  endpoint: EndpointDescription,
  { options, pki }: Pick<LinkOptions, "options" | "pki">,
): Promise<void> {
  const { serverCertificate: certificate, securityMode } = endpoint;
  const login = loginNeedsCertificate(endpoint, options);
  if (securityMode === noSecurity && !login) return;
  const need = login ? loginNeed(options) : "security needs the server's certificate";
  if (!certificate?.length)
    throw new AgentError("SOURCE_PROTOCOL", `${options.url}: ${need}, and the server sends none`);
  await pki.verify(certificate, login ? need : undefined);
}

export const noSecurity = 1;

/** Why a login over a channel without security needs the server's certificate. */
export function loginNeed({ userCertificate }: LinkOptions["options"]): string {
  return userCertificate
    ? "the user's certificate has to sign the server's certificate"
    : "the password has to be encrypted with the server's certificate";
}

/**
 * The configured endpoint, for servers that list none behind a forwarded port or without security.
 * Undefined if `security` lacks the policy or certificate that its mode needs. The server names the logins with the
 * session. Rejects with `SOURCE_REFUSED` if the file cannot be read.
 */
async function directEndpoint(
  ua: Ua,
  { security, url }: Pick<OpcuaOptions, "security" | "url">,
): Promise<EndpointDescription | undefined> {
  if (!security) return undefined;
  const { mode, policy, serverCertificate: file } = security;
  const common = { endpointUrl: url, securityMode: modes[mode], userIdentityTokens: [] };
  if (mode === "none") return new ua.EndpointDescription({ ...common, securityPolicyUri: policyUri("None") });
  if (policy === undefined || file === undefined) return undefined;
  const certificate = await readCertificate(file);
  return new ua.EndpointDescription({
    ...common,
    securityPolicyUri: policyUri(policy),
    serverCertificate: certificate.raw,
    server: { applicationUri: uriOf(certificate) ?? "" },
  });
}

/** Whether the endpoint was made from the configuration. An endpoint that a server lists has at least one login. */
export function isDirect({ userIdentityTokens }: Pick<EndpointDescription, "userIdentityTokens">): boolean {
  return !userIdentityTokens?.length;
}

async function readCertificate(file: string): Promise<X509Certificate> {
  try {
    return new X509Certificate(await readFile(file));
  } catch (error) {
    const code = error instanceof Error && "code" in error ? ` (${String(error.code)})` : "";
    const message = `security.serverCertificate: ${file} cannot be read as a certificate${code}`;
    throw new AgentError("SOURCE_REFUSED", message, { cause: error });
  }
}
