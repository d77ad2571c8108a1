// One secure channel with one session on it. The stack's own reconnecting is off: what is lost stays lost, and the next
// link takes the session up again.

import { createHash } from "node:crypto";
import type { OPCUAClient as Client, EndpointDescription } from "node-opcua-client";
import { AgentError } from "../../core/errors.ts";
import type { Logger } from "../../core/runtime.ts";
import { deadline, orAbort } from "../../lib/abort.ts";
import { chooseEndpoint, securityOf } from "./endpoint.ts";
import { sourceError, statusOf } from "./failure.ts";
import type { OpcuaOptions } from "./options.ts";
import type { Pki } from "./pki.ts";
import type { Resumption, SessionRecord } from "./resumption.ts";
import type { Stack, UaSession } from "./stack.ts";

type UaRequest = Parameters<UaSession["_performMessageTransaction"]>[0];

const longestSilenceMs = 86_400_000;

/** A class of answers, to check an answer by. */
export type Answer<R> = abstract new (...args: never[]) => R;

export interface Link {
  /** Whether the session is the one that the record named. */
  readonly resumed: boolean;
  /** What the next link needs to take the session up again. */
  readonly session: SessionRecord;
  /** Aborts with an `AgentError` when the channel is gone. */
  readonly lost: AbortSignal;
  /**
   * One service call with a deadline of its own. Rejects with `SOURCE_*` (the status stands in the message), with
   * `signal.reason`, or with the reason of `lost`.
   */
  call<R>(request: UaRequest, answer: Answer<R>, signal: AbortSignal, timeoutMs?: number): Promise<R>;
  /** Ends the session. `deleteSubscriptions: false` leaves them on the server until they are taken up or time out. */
  close(options: { readonly deleteSubscriptions: boolean }): Promise<void>;
  /** Ends the channel alone: the session stays on the server, for the next link to take up. */
  hangUp(): Promise<void>;
}

export interface LinkOptions {
  readonly name: string;
  readonly agent: string;
  readonly options: OpcuaOptions;
  readonly pki: Pki;
}

/** The endpoints of a server. They are public: asked for over a channel without security, as discovery is meant to be. */
export async function discover(stack: Stack, link: LinkOptions, signal: AbortSignal): Promise<EndpointDescription[]> {
  const { url, timeout } = link.options;
  const client = createClient(stack, link, undefined);
  try {
    return await bounded(`asking ${url} for its endpoints`, timeout, signal, async () => {
      await client.connect(url);
      return client.getEndpoints();
    });
  } finally {
    await hangUp(client);
  }
}

/** Names whom we are connected to, as whom and how: what a session on the server belongs to. */
export function connectionDigest({ options, pki }: LinkOptions, endpoint: EndpointDescription): string {
  const parts = [options.url, options.username ?? "", securityOf(endpoint), pki.thumbprint];
  return createHash("sha256").update(JSON.stringify(parts)).digest("hex");
}

/** The endpoint to use, its certificate checked. Rejects as `chooseEndpoint` and `Pki.verify` do. */
export async function findEndpoint(stack: Stack, link: LinkOptions, signal: AbortSignal): Promise<EndpointDescription> {
  const endpoint = chooseEndpoint(await discover(stack, link, signal), link.options);
  if (endpoint.securityMode !== stack.ua.MessageSecurityMode.None) {
    if (!endpoint.serverCertificate?.length)
      throw new AgentError("SOURCE_PROTOCOL", `${link.options.url} offers security without a certificate`);
    await link.pki.verify(endpoint.serverCertificate);
  }
  return endpoint;
}

/** Opens the channel, then takes up the session of the record or creates one. Leaves nothing behind when it rejects. */
export async function openLink(
  stack: Stack,
  link: LinkOptions,
  endpoint: EndpointDescription,
  resumption: Resumption,
  log: Logger,
  signal: AbortSignal,
): Promise<Link> {
  const { options } = link;
  const client = createClient(stack, link, endpoint);
  const lost = new AbortController();
  const fail = () => lost.abort(new AgentError("SOURCE_UNREACHABLE", `the connection to ${options.url} is lost`));
  client.on("connection_lost", fail);
  client.on("close", fail);
  try {
    const url = options.endpointHost === "server" ? (endpoint.endpointUrl ?? options.url) : options.url;
    await bounded(`connecting to ${url}`, options.timeout, signal, () => client.connect(url));
    const old = resumption.session;
    const session =
      old &&
      (await takeUp(stack, client, old, link, signal).catch((error: unknown) => {
        signal.throwIfAborted();
        log.debug({ err: error }, "the former session is gone");
        return undefined;
      }));
    const used =
      session ??
      ((await bounded(`logging in at ${url}`, options.timeout, signal, () =>
        client.createSession(identity(stack, options)),
      )) as UaSession);
    return makeLink(stack, client, used, session !== undefined, lost, options);
  } catch (error) {
    await hangUp(client);
    throw error;
  }
}

function createClient(
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
    defaultTransactionTimeout: options.timeout,
  });
}

function identity({ ua }: Stack, { username, password }: OpcuaOptions) {
  if (username === undefined) return { type: ua.UserTokenType.Anonymous } as const;
  return { type: ua.UserTokenType.UserName, userName: username, password: password?.reveal() ?? "" } as const;
}

/** Activates the session of an earlier connection on this one (OPC 10000-4, 5.7.3), with all that waits in it. */
async function takeUp(stack: Stack, client: Client, old: SessionRecord, { options }: LinkOptions, signal: AbortSignal) {
  const session = new stack.Session(client as unknown as ConstructorParameters<Stack["Session"]>[0]);
  // The stack knows whose session it is only once it is activated.
  session._client = null;
  session.name = old.name;
  session.sessionId = stack.ua.coerceNodeId(old.id);
  session.authenticationToken = stack.ua.coerceNodeId(old.token);
  session.timeout = old.timeoutMs;
  session.serverNonce = Buffer.from(old.nonce, "base64");
  session.serverCertificate = Buffer.from(old.certificate, "base64");
  session.userIdentityInfo = identity(stack, options);
  await bounded("taking up the session", options.timeout, signal, () => client.reactivateSession(session));
  return session;
}

function makeLink(
  { ua }: Stack,
  client: Client,
  session: UaSession,
  resumed: boolean,
  lost: AbortController,
  options: OpcuaOptions,
): Link {
  let closed = false;
  const call = <R>(request: UaRequest, answer: Answer<R>, signal: AbortSignal, timeoutMs = options.timeout) => {
    const doing = request.constructor.name.replace(/Request$/, "");
    request.requestHeader.timeoutHint = timeoutMs;
    // Past the stack's own waiting, which would open a session of its own where ours is gone.
    const transact = () =>
      new Promise<R>((resolve, reject) => {
        session._performMessageTransaction(request, (error, response) => {
          if (error) reject(error);
          else if (response instanceof answer) resolve(response);
          else reject(new AgentError("SOURCE_PROTOCOL", `${doing}: the server answered something else`));
        });
      });
    return bounded(doing, timeoutMs + 1_000, AbortSignal.any([signal, lost.signal]), transact);
  };
  const close = async ({ deleteSubscriptions }: { readonly deleteSubscriptions: boolean }) => {
    if (closed) return;
    closed = true;
    if (!lost.signal.aborted) {
      const request = new ua.CloseSessionRequest({ deleteSubscriptions });
      await call(request, ua.CloseSessionResponse, new AbortController().signal, 3_000).catch(() => {});
    }
    await hangUp(client);
  };
  return {
    resumed,
    session: {
      id: session.sessionId.toString(),
      token: session.authenticationToken?.toString() ?? "",
      name: session.name,
      timeoutMs: session.timeout,
      nonce: session.serverNonce?.toString("base64") ?? "",
      certificate: session.serverCertificate?.toString("base64") ?? "",
    },
    lost: lost.signal,
    call,
    close,
    async hangUp() {
      closed = true;
      await hangUp(client);
    },
  };
}

/** Waits for `work` until its deadline; what it rejects with becomes `SOURCE_*`. */
async function bounded<T>(doing: string, ms: number, signal: AbortSignal, work: () => Promise<T>): Promise<T> {
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
async function hangUp(client: Client): Promise<void> {
  const patience = new AbortController();
  const timer = setTimeout(() => patience.abort(), 2_000);
  await orAbort(client.disconnect(), patience.signal).catch(() => {});
  clearTimeout(timer);
}

/** Whether the server does not know the session any more. */
export function sessionGone(error: unknown): boolean {
  return ["BadSessionIdInvalid", "BadSessionClosed", "BadSessionNotActivated"].includes(statusOf(error) ?? "");
}
