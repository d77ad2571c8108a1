// One secure channel with one session. It never reconnects: the next link resumes the session.
//
// The stack's reconnecting and its subscription objects are not used. They re-create items with stale namespace indexes,
// take a keep-alive's number for a message's, acknowledge before the data is stored, swallow failures, and end with the
// process.
import type { OPCUAClient as Client, EndpointDescription } from "node-opcua-client";
import { AgentError } from "../../../core/errors.ts";
import type { Logger } from "../../../core/runtime.ts";
import { orAbort } from "../../../lib/flow/abort.ts";
import { channelError, refusalOf, statusOf } from "../stack/failure.ts";
import type { Stack, Ua, UaSession } from "../stack/stack.ts";
import { bounded, createClient, hangUp, type LinkOptions } from "./client.ts";
import { securityOf } from "./endpoint.ts";
import { guardLogin } from "./login.ts";
import type { Resumption, SessionRecord } from "./resumption.ts";

type UaRequest = Parameters<UaSession["_performMessageTransaction"]>[0];

/** `Given`: what the constructor of a stack class takes. `Made`: its instances. */
type Given<C> = C extends abstract new (options?: infer O) => unknown ? O : never;
type Made<C> = C extends abstract new (...args: never[]) => infer R ? R : never;
type ServiceOf<K> = K extends `${infer S}Request` ? (`${S}Response` extends keyof Ua ? S : never) : never;
export type ServiceName = ServiceOf<keyof Ua>;
export type ServiceResponse<S extends ServiceName> = Made<Ua[`${S}Response`]>;

export interface Link {
  readonly ua: Ua;
  readonly resumed: boolean;
  /** Data that the next link needs to resume the session. */
  readonly session: SessionRecord;
  /** Aborts with an `AgentError` when the channel is gone. */
  readonly lost: AbortSignal;
  /** Calls one service with its own deadline. Rejects with `SOURCE_*`, `signal.reason` or the reason of `lost`. */
  call<S extends ServiceName>(
    service: S,
    fields: Given<Ua[`${S}Request`]>,
    signal: AbortSignal,
    timeoutMs?: number,
  ): Promise<ServiceResponse<S>>;
  /** Ids of the session's subscriptions. `close` deletes them: at some servers they outlive the session. */
  readonly subscriptions: Set<number>;
  close(): Promise<void>;
  /** Closes only the channel. The session stays on the server for the next link. */
  hangUp(): Promise<void>;
}

const closeWithinMs = 3_000;
const answerWithinMs = 1_500;
/** Deadline of the first attempt to resume a session. It doubles with each attempt, for slow servers. */
const takeUpWithinMs = 2_000;
/** Some servers do not answer for an unknown session. After these attempts the agent creates a new one. */
const mostAttempts = 5;

/**
 * Opens the channel, then resumes the recorded session or creates one; without `resumption` always the latter. Leaves
 * nothing behind if it rejects.
 */
export async function openLink(
  stack: Stack,
  link: LinkOptions,
  endpoint: EndpointDescription,
  log: Logger,
  signal: AbortSignal,
  resumption?: Resumption,
): Promise<Link> {
  const { options } = link;
  const client = createClient(stack, link, endpoint);
  const logins = guardLogin(stack.ua, client, endpoint, link, resumption?.session?.logins);
  const lost = new AbortController();
  const fail = () => lost.abort(new AgentError("SOURCE_UNREACHABLE", `the connection to ${options.url} is lost`));
  client.on("connection_lost", fail);
  client.on("close", fail);

  /** Activates an earlier session on this connection (OPC 10000-4, 5.7.3), with its queued notifications. */
  const takeUp = async (old: SessionRecord, attempts: number) => {
    const session = new stack.Session(client as unknown as ConstructorParameters<Stack["Session"]>[0]);
    // The stack sets the session's client when the session is activated.
    session._client = null;
    session.name = old.name;
    session.sessionId = stack.ua.coerceNodeId(old.id);
    session.authenticationToken = stack.ua.coerceNodeId(old.token);
    session.timeout = old.timeoutMs;
    session.serverNonce = Buffer.from(old.nonce, "base64");
    session.serverCertificate = Buffer.from(old.certificate, "base64");
    session.userIdentityInfo = link.identity;
    const withinMs = Math.min(options.timeout, takeUpWithinMs * 2 ** attempts);
    await bounded("taking up the session", withinMs, signal, () => client.reactivateSession(session));
    return session;
  };
  /**
   * Resumes the recorded session. Undefined if there is none, if the server refuses it, or if the server answers other
   * requests but not this one. Otherwise rejects, since the session and its queued notifications may still exist.
   */
  const resume = async (): Promise<UaSession | undefined> => {
    const { session: old, attempts = 0 } = resumption ?? {};
    if (!old || attempts >= mostAttempts) return undefined;
    await resumption?.remember({ attempts: attempts + 1 });
    try {
      return await takeUp(old, attempts);
    } catch (error) {
      signal.throwIfAborted();
      // A server that ignores an unknown session still answers this request. A cut network answers nothing.
      const withinMs = Math.min(options.timeout, answerWithinMs);
      const asking = () => bounded("asking for servers", withinMs, signal, () => client.findServers());
      const gone = refusalOf(error) !== undefined || (await asking().catch(() => undefined)) !== undefined;
      if (!gone) throw error;
      log.debug({ err: error }, "the former session is gone");
      return undefined;
    }
  };
  let creating: Promise<{ close(deleteSubscriptions: boolean): Promise<void> }> | undefined;
  try {
    const url = options.endpointHost === "server" ? (endpoint.endpointUrl ?? options.url) : options.url;
    const secure = endpoint.securityMode !== stack.ua.MessageSecurityMode.None;
    await bounded(`connecting to ${url}`, options.timeout, signal, () => client.connect(url)).catch(
      (error: unknown) => {
        throw secure ? channelError(error, link.pki, securityOf(endpoint), new Date()) : error;
      },
    );
    const former = await resume();
    const login = () => (creating = client.createSession(link.identity));
    // The declared type of the result is narrower than what the stack returns.
    const session = former ?? ((await bounded(`logging in at ${url}`, options.timeout, signal, login)) as UaSession);
    return makeLink(client, session, lost, { ua: stack.ua, options, resumed: former !== undefined, logins: logins() });
  } catch (error) {
    // The login was aborted: close the session as soon as it exists.
    const closed = creating?.then((session) => session.close(true)).catch(() => {});
    if (closed && !lost.signal.aborted) await orAbort(closed, AbortSignal.timeout(closeWithinMs)).catch(() => {});
    await hangUp(client);
    throw error;
  }
}

function makeLink(
  client: Client,
  session: UaSession,
  lost: AbortController,
  more: Pick<Link, "ua" | "resumed"> & Pick<SessionRecord, "logins"> & Pick<LinkOptions, "options">,
): Link {
  const { ua, options, resumed, logins } = more;
  let closed = false;
  const subscriptions = new Set<number>();
  const call: Link["call"] = (service, fields, signal, timeoutMs = options.timeout) => {
    const Request = ua[`${service}Request`] as unknown as new (given: typeof fields) => UaRequest; // see `ServiceName`
    const Response = ua[`${service}Response`] as unknown as new () => ServiceResponse<typeof service>;
    const request = new Request(fields);
    request.requestHeader.timeoutHint = timeoutMs;
    // Bypasses the stack's retry logic, which would create a new session if this one is gone.
    const transact = () =>
      new Promise<ServiceResponse<typeof service>>((resolve, reject) => {
        session._performMessageTransaction(request, (error, response) => {
          if (error) reject(error);
          else if (response instanceof Response) resolve(response);
          else reject(new AgentError("SOURCE_PROTOCOL", `${service}: the server answered something else`));
        });
      });
    return bounded(service, timeoutMs + 1_000, AbortSignal.any([signal, lost.signal]), transact);
  };
  return {
    ua,
    resumed,
    session: {
      id: session.sessionId.toString(),
      token: session.authenticationToken?.toString() ?? "",
      name: session.name,
      timeoutMs: session.timeout,
      nonce: session.serverNonce?.toString("base64") ?? "",
      certificate: session.serverCertificate?.toString("base64") ?? "",
      logins,
    },
    lost: lost.signal,
    subscriptions,
    call,
    async close() {
      if (closed) return;
      closed = true;
      const { signal } = new AbortController();
      const subscriptionIds = [...subscriptions];
      if (!lost.signal.aborted && subscriptionIds.length > 0)
        await call("DeleteSubscriptions", { subscriptionIds }, signal, closeWithinMs).catch(() => {});
      if (!lost.signal.aborted)
        await call("CloseSession", { deleteSubscriptions: true }, signal, closeWithinMs).catch(() => {});
      await hangUp(client);
    },
    async hangUp() {
      closed = true;
      await hangUp(client);
    },
  };
}

export function sessionGone(error: unknown): boolean {
  return ["BadSessionIdInvalid", "BadSessionClosed", "BadSessionNotActivated"].includes(statusOf(error) ?? "");
}
