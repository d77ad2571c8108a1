// Creates clients of the OPC UA stack that log nothing, never reconnect and store files only in the source's folder.
// Finds the endpoint of a server with them.
import { createHash, X509Certificate } from "node:crypto";
import { readFile } from "node:fs/promises";
import { connect, type Socket } from "node:net";
import type { OPCUAClient as Client, EndpointDescription, UserIdentityInfo } from "node-opcua-client";
import { AgentError, codeOf } from "../../../core/errors.ts";
import { deadline, orAbort } from "../../../lib/flow/abort.ts";
import type { Pki } from "../certificates/pki.ts";
import { uriOf } from "../certificates/trust.ts";
import type { OpcuaOptions } from "../config/options.ts";
import { sourceError } from "../stack/failure.ts";
import { largestMessageBytes, type Stack, type Ua } from "../stack/stack.ts";
import { chooseEndpoint, loginNeedsCertificate, modes, policyUri, securityOf } from "./endpoint.ts";

export interface LinkOptions {
  readonly name: string;
  readonly agent: string;
  readonly options: OpcuaOptions;
  readonly pki: Pki;
  readonly identity: UserIdentityInfo;
}

const longestSilenceMs = 86_400_000;

/** `endpoint` undefined: the client is used for discovery only. */
export function createClient(
  stack: Stack,
  { name, agent, options, pki }: LinkOptions,
  endpoint: EndpointDescription | undefined,
) {
  const { OPCUAClient, MessageSecurityMode, SecurityPolicy } = stack.ua;
  return OPCUAClient.create({
    applicationName: `tagferry ${agent}`,
    applicationUri: pki.applicationUri,
    clientName: `tagferry-${agent}-${name}-`,
    clientCertificateManager: pki.store,
    certificateFile: pki.certificateFile,
    securityMode: endpoint?.securityMode ?? MessageSecurityMode.None,
    securityPolicy: endpoint?.securityPolicyUri ?? SecurityPolicy.None,
    ...(endpoint &&
      endpoint.securityMode !== MessageSecurityMode.None && { serverCertificate: endpoint.serverCertificate }),
    endpointMustExist: false,
    connectionStrategy: { maxRetry: 0, initialDelay: 100, maxDelay: 1_000 },
    keepSessionAlive: false,
    keepPendingSessionsOnDisconnect: true,
    requestedSessionTimeout: options.session.timeout,
    // The stack hangs up after this time without data. Only the publisher knows how long a silence is normal.
    transportTimeout: longestSilenceMs,
    transportFactory: stack.transports,
    defaultTransactionTimeout: options.timeout,
  });
}

/** Rejects with `SOURCE_*` if `work` fails or takes longer than `ms`, and with `signal.reason` on abort. */
export async function bounded<T>(doing: string, ms: number, signal: AbortSignal, work: () => Promise<T>): Promise<T> {
  const late = () => new AgentError("SOURCE_UNREACHABLE", `${doing}: no answer within ${ms} ms`);
  using limit = deadline(ms, signal, late);
  try {
    return await orAbort(work(), limit.signal);
  } catch (error) {
    signal.throwIfAborted();
    throw sourceError(error, doing);
  }
}

/** Closes the channel; waits at most 2 s for a server that no longer answers. */
export async function hangUp(client: Client): Promise<void> {
  const patience = new AbortController();
  const timer = setTimeout(() => patience.abort(), 2_000);
  await orAbort(client.disconnect(), patience.signal).catch(() => {});
  clearTimeout(timer);
}

const reachWithinMs = 6_000;
const greetEveryMs = 2_000;

/**
 * Checks quickly that the server can be reached; a service call into a dead network would wait for its whole timeout.
 * A cut network or a dead tunnel drops packets silently, also after it has recovered. The agent therefore sends a Hello
 * every 2 s, each over a new connection. The first answer to any of them counts, so a slow server has the whole time
 * for the first one.
 *
 *   0 s     2 s     4 s     6 s
 *   SYN, Hello ............ timed out
 *           SYN, Hello .... answered: reached
 *
 * Resolves with any answer, also if the server hangs up. Leaves no connection open. Rejects with `SOURCE_UNREACHABLE`
 * or `signal.reason`.
 */
export async function assertReachable(url: string, timeoutMs: number, signal: AbortSignal): Promise<void> {
  const [, literal, name, port] = /^opc\.tcp:\/\/(?:\[([^\]]+)\]|([^/:]+)):(\d+)/.exec(url) ?? [];
  const host = literal ?? name;
  if (host === undefined) throw new AgentError("SOURCE_UNREACHABLE", `${url} is no address`);
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const sockets: Socket[] = [];
  const greet = () => {
    const socket = connect({ host, port: Number(port) }, () => {
      socket.write(hello(url));
      socket.on("error", resolve);
    });
    socket.once("error", reject).once("data", resolve).once("end", resolve);
    sockets.push(socket);
  };
  const again = setInterval(greet, greetEveryMs);
  try {
    greet();
    await bounded(`connecting to ${url}`, Math.min(timeoutMs, reachWithinMs), signal, () => promise);
  } finally {
    clearInterval(again);
    for (const socket of sockets) socket.on("error", () => {}).destroy();
  }
}

/** A Hello message (OPC 10000-6, 7.1.2.3). */
function hello(url: string): Buffer {
  const address = Buffer.from(url);
  const message = Buffer.alloc(32 + address.length);
  message.write("HELF", "latin1");
  const [version, buffer, chunks] = [0, 65_536, 0];
  const fields = [message.length, version, buffer, buffer, largestMessageBytes, chunks, address.length];
  for (const [i, field] of fields.entries()) message.writeUInt32LE(field, 4 + 4 * i);
  address.copy(message, 32);
  return message;
}

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
async function endpointsElsewhere(client: Client): Promise<EndpointDescription[]> {
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
  return userDigest(link, endpoint, endpoint.securityMode === modes.none ? "" : link.pki.thumbprint);
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
  if (securityMode === modes.none && !login) return;
  const need = login ? loginNeed(options) : "security needs the server's certificate";
  if (!certificate?.length)
    throw new AgentError("SOURCE_PROTOCOL", `${options.url}: ${need}, and the server sends none`);
  await pki.verify(certificate, login ? need : undefined);
}

/** Why a login over a channel without security needs the server's certificate. */
export function loginNeed({ userCertificate }: LinkOptions["options"]): string {
  return userCertificate
    ? "the user's certificate has to sign the server's certificate"
    : "the password has to be encrypted with the server's certificate";
}

/**
 * The configured endpoint, for servers that list none behind a forwarded port or without security. Undefined if
 * `security` lacks the policy or certificate that its mode needs. The server names the logins with the session. Rejects
 * with `SOURCE_REFUSED` if the file cannot be read.
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
    const code = codeOf(error);
    const reason = typeof code === "string" ? ` (${code})` : "";
    const message = `security.serverCertificate: ${file} cannot be read as a certificate${reason}`;
    throw new AgentError("SOURCE_REFUSED", message, { cause: error });
  }
}
