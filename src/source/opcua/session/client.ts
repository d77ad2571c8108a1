// The stack's client, set up so that it keeps quiet, reconnects nothing and stores nothing outside the source's folder.
import { connect, type Socket } from "node:net";
import type { OPCUAClient as Client, EndpointDescription, UserIdentityInfo } from "node-opcua-client";
import { AgentError } from "../../../core/errors.ts";
import { deadline, orAbort } from "../../../lib/abort.ts";
import type { OpcuaOptions } from "../config/options.ts";
import { sourceError } from "./failure.ts";
import type { Pki } from "./pki.ts";
import { largestMessageBytes, type Stack } from "./stack.ts";

export interface LinkOptions {
  readonly name: string;
  readonly agent: string;
  readonly options: OpcuaOptions;
  readonly pki: Pki;
  readonly identity: UserIdentityInfo;
}

const longestSilenceMs = 86_400_000;

/** A client for `endpoint`; without one, for discovery. */
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
    // The stack hangs up after so long without data; silence is the publisher's to judge, who knows what is normal.
    transportTimeout: longestSilenceMs,
    transportFactory: stack.transports,
    defaultTransactionTimeout: options.timeout,
  });
}

/** Waits for `work` until its deadline; what it rejects with becomes `SOURCE_*`. */
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

/** Ends the channel, and does not wait for a server that is gone. */
export async function hangUp(client: Client): Promise<void> {
  const patience = new AbortController();
  const timer = setTimeout(() => patience.abort(), 2_000);
  await orAbort(client.disconnect(), patience.signal).catch(() => {});
  clearTimeout(timer);
}

const reachWithinMs = 6_000;
const greetEveryMs = 2_000;

/**
 * Whether a server can be reached at all: asked by itself, since a call into a dead network waits as long as a slow server may
 * take. A network that is cut, or a tunnel whose far end is gone, swallows what is sent and says nothing of its healing: the
 * greeting is sent again and again, each over a connection of its own, and the first answer to any of them counts. A server that
 * takes its time has all of that time for the first one.
 *
 *   0 s     2 s     4 s     6 s
 *   SYN, Hello ............ given up
 *           SYN, Hello .... answered: reached
 *
 * Resolves once the server has answered a Hello message, whatever it says; hanging up is an answer, too. Nothing stays open.
 * Rejects with `SOURCE_UNREACHABLE` or `signal.reason`.
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
