// Creates clients of the OPC UA stack that log nothing, never reconnect and store files only in the source's folder.
import { connect, type Socket } from "node:net";
import type { OPCUAClient as Client, EndpointDescription, UserIdentityInfo } from "node-opcua-client";
import { AgentError } from "../../../core/errors.ts";
import { deadline, orAbort } from "../../../lib/flow/abort.ts";
import type { Pki } from "../certificates/pki.ts";
import type { OpcuaOptions } from "../config/options.ts";
import { sourceError } from "../stack/failure.ts";
import { largestMessageBytes, type Stack } from "../stack/stack.ts";

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
