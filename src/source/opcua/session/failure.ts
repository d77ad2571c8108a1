// What the stack and servers say when something fails, in the agent's codes and with what to do about it.
import { AgentError, credentialsHint, isAgentError } from "../../../core/errors.ts";
import { formatByteSize } from "../../../lib/byte-size.ts";
import { largestMessageBytes } from "./stack.ts";

/** The status a server or the stack gave, by name: `BadUserAccessDenied`. Undefined: none was given. */
export function statusOf(error: unknown): string | undefined {
  const text = error instanceof Error ? error.message : String(error);
  return /\b(Bad[A-Z]\w+)/.exec(text)?.[1];
}

/** What the stack calls a connection that fails; the server has refused nothing. */
const transport = [
  "BadTimeout",
  "BadRequestTimeout",
  "BadRequestInterrupted",
  "BadConnectionClosed",
  "BadConnectionRejected",
  "BadSecureChannelClosed",
  "BadSecureChannelIdInvalid",
  "BadCommunicationError",
  "BadNotConnected",
  "BadNoCommunication",
  "BadDisconnect",
  "BadServerNotConnected",
  "BadServerHalted",
  "BadShutdown",
  "BadTooManyOperations",
  "BadOutOfMemory",
  "BadResourceUnavailable",
];

/** The status by which the server refused what it was asked. Undefined: it may do so the next time it is asked. */
export function refusalOf(error: unknown): string | undefined {
  const status = statusOf(error);
  return status === undefined || transport.includes(status) || status.startsWith("BadTcp") ? undefined : status;
}

/** Undefined where the server refuses, or does not answer what it was asked. Rejects where it cannot be asked. */
export async function orRefused<T>(asking: Promise<T>, signal: AbortSignal): Promise<T | undefined> {
  try {
    return await asking;
  } catch (error) {
    signal.throwIfAborted();
    if (refusalOf(error) === undefined && !(isAgentError(error) && error.code === "SOURCE_PROTOCOL")) throw error;
    return undefined;
  }
}

interface Remedy {
  /** Whether the server turned us away. */
  readonly refused: boolean;
  readonly text: string;
  /** What to do about it. */
  readonly hint: string;
}
const refused = (text: string, hint: string): Remedy => ({ refused: true, text, hint });
const notNow = (text: string, hint: string): Remedy => ({ refused: false, text, hint });

const login = refused("the server refuses this user or password, or does not trust userCertificate", credentialsHint);
const trustThere = "trust the agent's certificate at the server; tagferry trust list shows it";
const anotherCertificate = "delete pki/own in the data directory for a new certificate, or ask the server's operator";
const untrusted = refused("the server does not trust this agent", trustThere);
const badCertificate = refused("the server does not accept this agent's certificate", anotherCertificate);
const offers = "tagferry browse URL --endpoints lists what the server offers";
const wait = "the agent tries again; if this goes on, look at the server";
const free = "close a client of the server, or raise its limit";

/** What a status means to the operator, and what mends it. The others are told by their name. */
const remedies: Readonly<Record<string, Remedy>> = {
  BadUserAccessDenied: login,
  BadIdentityTokenRejected: login,
  BadUserSignatureInvalid: refused(
    "the server finds that userCertificate and its key do not belong together",
    "set certFile and keyFile to files that belong together",
  ),
  BadIdentityTokenInvalid: refused("the server does not accept this kind of login", offers),
  BadSecurityChecksFailed: untrusted,
  BadCertificateUntrusted: untrusted,
  BadCertificateInvalid: badCertificate,
  BadCertificateUseNotAllowed: badCertificate,
  BadCertificatePolicyCheckFailed: refused(
    "the server requires a longer or a shorter key in this agent's certificate",
    anotherCertificate,
  ),
  BadCertificateUriInvalid: refused(
    "the server finds another application URI in this agent's certificate",
    anotherCertificate,
  ),
  BadCertificateHostNameInvalid: refused(
    "the server finds another host name in this agent's certificate",
    anotherCertificate,
  ),
  BadCertificateTimeInvalid: refused(
    "the server finds this agent's certificate out of date",
    "compare the clocks of both machines",
  ),
  BadCertificateRevoked: refused("the server finds this agent's certificate revoked", anotherCertificate),
  BadSecurityModeRejected: refused("the server refuses this security mode", offers),
  BadSecurityPolicyRejected: refused("the server refuses this security policy", offers),
  BadServiceUnsupported: notNow(
    "the server does not support this service",
    "its documentation lists the services it supports",
  ),
  BadTooManySessions: notNow("all sessions of the server are taken", free),
  BadMaxConnectionsReached: notNow("all connections of the server are taken", free),
  BadTcpEndpointUrlInvalid: notNow("the server expects its own address", "set endpointHost: server"),
  BadTcpServerTooBusy: notNow("the server is too busy", wait),
  BadServerHalted: notNow("the server is stopped", wait),
  BadShutdown: notNow("the server is being stopped", wait),
  BadTimeout: notNow("no answer in time", wait),
  BadRequestTimeout: notNow("no answer in time", wait),
};

/** What the operating system says of a network, and what is meant. */
const networkFaults: Readonly<Record<string, string>> = {
  ECONNREFUSED: "nothing listens there",
  ECONNRESET: "the connection was cut",
  EPIPE: "the connection was cut",
  ENOTFOUND: "the name of the host is not known",
  EAI_AGAIN: "the name server does not answer",
  ETIMEDOUT: "no answer in time",
  EHOSTUNREACH: "there is no way to this host",
  ENETUNREACH: "there is no way to this network",
};

/** How the stack says that a message is larger than it takes. */
const tooLarge = /max (?:message size|chunk count) exceeded/;

function tooLargeError(error: Error, doing: string): AgentError {
  const limit = formatByteSize(largestMessageBytes);
  return new AgentError("SOURCE_UNREACHABLE", `${doing}: the server sent a message of more than ${limit}`, {
    cause: error,
    hint: "leave large arrays and images out of the tags, or let the server send larger messages",
  });
}

/** Any failure as an `AgentError`: `SOURCE_REFUSED` where the server turned us away, else `SOURCE_UNREACHABLE`. What the stack says of it is the cause alone. */
export function sourceError(error: unknown, doing: string): AgentError {
  if (isAgentError(error)) return error;
  if (error instanceof Error && tooLarge.test(error.message)) return tooLargeError(error, doing);
  const status = statusOf(error);
  const remedy = remedies[status ?? ""];
  const code = remedy?.refused ? "SOURCE_REFUSED" : "SOURCE_UNREACHABLE";
  const hint =
    remedy?.hint ?? (status === undefined ? undefined : "the documentation of the server says what this status means");
  return new AgentError(code, `${doing}: ${explained(error, status, remedy)}`, {
    cause: error,
    ...(hint !== undefined && { hint }),
  });
}

function explained(error: unknown, status: string | undefined, remedy: Remedy | undefined): string {
  if (status !== undefined) return remedy ? `${remedy.text} (${status})` : `the server answers ${status}`;
  const text = error instanceof Error ? error.message : String(error);
  const fault = /\bE[A-Z_]{3,}\b/.exec(text)?.[0] ?? "";
  const meant = networkFaults[fault];
  if (meant !== undefined) return `${meant} (${fault})`;
  if (/timeout/i.test(text)) return "no answer in time";
  if (/ACK|Packet Assembler/.test(text)) return "what answers there does not speak OPC UA";
  if (hungUp(error)) return "the server hangs up";
  return /channel|disconnect|closed|socket/i.test(text)
    ? "the connection was cut"
    : "the connection failed, no reason given";
}

const hangingUp =
  /rejected by server|ended by server|premature disconnection|disconnected by third party|Secure Channel Closed|Connection Break|No data|ECONNRESET/i;

/** Whether the other side ended the connection, in the stack's words. */
function hungUp(error: unknown): boolean {
  const text = error instanceof Error ? error.message : String(error);
  return hangingUp.test(text) && !/ECONNREFUSED|timeout/i.test(text);
}

function noAnswer(error: AgentError): boolean {
  return error.code === "SOURCE_UNREACHABLE" && /no answer (?:in time|within)/.test(error.message);
}

/** What a server has to trust of the agent. */
export interface OwnCertificate {
  readonly thumbprint: string;
  readonly certificateFile: string;
}

/**
 * A failure to open a channel with security, with the certificate that the server has to trust. Some servers hang up
 * without a word on an agent that they do not trust; they have just told their endpoints, so it is not the network.
 */
export function channelError(
  error: unknown,
  { thumbprint, certificateFile }: OwnCertificate,
  security: string,
  now: Date,
): unknown {
  if (!isAgentError(error)) return error;
  if (noAnswer(error))
    return new AgentError(
      "SOURCE_UNREACHABLE",
      `the server has just listed ${security}, and does not answer to opening such a channel; it may not support it`,
      { cause: error, hint: `choose another endpoint with security: { mode, policy }; ${offers}` },
    );
  const speechless = error.code === "SOURCE_UNREACHABLE" && statusOf(error) === undefined && hungUp(error.cause);
  if (!speechless && error.code !== "SOURCE_REFUSED") return error;
  const what = speechless ? "the server hangs up, most likely because it does not trust this agent" : error.message;
  const clock = statusOf(error) === "BadCertificateTimeInvalid" ? `; this clock says ${now.toISOString()}` : "";
  const message = `${what}${clock}; the certificate to trust there is ${thumbprint}, ${certificateFile} (tagferry trust list shows it)`;
  const hint =
    "the server's operator trusts the agent's certificate there, often by moving it out of a folder of rejected ones";
  return new AgentError("SOURCE_REFUSED", message, { cause: error, hint });
}
