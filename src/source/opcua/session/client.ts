// The stack's client, set up so that it keeps quiet, reconnects nothing and stores nothing outside the source's folder.
import type { OPCUAClient as Client, EndpointDescription, UserIdentityInfo } from "node-opcua-client";
import { AgentError } from "../../../core/errors.ts";
import { deadline, orAbort } from "../../../lib/abort.ts";
import type { OpcuaOptions } from "../config/options.ts";
import { sourceError } from "./failure.ts";
import type { Pki } from "./pki.ts";
import type { Stack } from "./stack.ts";

export interface LinkOptions {
  readonly name: string;
  readonly agent: string;
  readonly options: OpcuaOptions;
  readonly pki: Pki;
  /** Who logs in. */
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
