// Translates errors of the stack and of servers to the agent's error codes, with advice for the operator.
import { AgentError, credentialsHint, isAgentError, reasonOf } from "../../../core/errors.ts";
import { formatByteSize } from "../../../lib/values/byte-size.ts";
import { largestMessageBytes } from "./stack.ts";

/** The status name in an error of a server or the stack, such as `BadUserAccessDenied`. Undefined if it has none. */
export function statusOf(error: unknown): string | undefined {
  const text = reasonOf(error);
  return /\b(Bad[A-Z]\w+)/.exec(text)?.[1];
}

/** Statuses of a failed connection or a busy server. They are not refusals. */
const transport = new RegExp(
  "^Bad(?:Timeout|Request(?:Timeout|Interrupted)|Connection(?:Closed|Rejected)|SecureChannel(?:Closed|IdInvalid)|" +
    "CommunicationError|NotConnected|NoCommunication|Disconnect|Server(?:NotConnected|Halted)|Shutdown|TooManyOperations|" +
    "OutOfMemory|ResourceUnavailable)$|^BadTcp(?!MessageTooLarge)",
);

/** The status of a permanent refusal. Undefined if a later attempt may succeed. */
export function refusalOf(error: unknown): string | undefined {
  const status = statusOf(error);
  return status === undefined || transport.test(status) ? undefined : status;
}

/** Statuses of an answer that is too large (OPC 10000-4, 7.38.2), of the connection or of the server. */
const tooLarge = ["BadResponseTooLarge", "BadEncodingLimitsExceeded", "BadTcpMessageTooLarge"];
/** Statuses of an answer that one side cannot decode or encode, or that the server aborted. */
const unreadable = [...tooLarge, "BadDecodingError", "BadEncodingError", "BadOperationAbandoned"];

/** Whether the server cannot send the answer, or the agent cannot read it. The cause may be a single value. */
export function isUnreadable(error: unknown): boolean {
  return unreadable.includes(statusOf(error) ?? "");
}

export function isTooLarge(error: unknown): boolean {
  return tooLarge.includes(statusOf(error) ?? "");
}

/** Why a single value cannot be received, if a request for it alone fails with `error`. */
export function unreadableReason(error: unknown): string {
  const status = statusOf(error);
  if (!isTooLarge(error)) return `the answer with this value cannot be read (${status})`;
  const limit = formatByteSize(largestMessageBytes);
  return `the value is larger than the agent or the server allows (${status}; the agent allows ${limit}): remove its tags, or let the server offer a part of it`;
}

/** Undefined if the server refuses or gives an invalid answer. Rejects if it cannot be reached. */
export async function orRefused<T>(asking: Promise<T>, signal: AbortSignal): Promise<T | undefined> {
  try {
    return await asking;
  } catch (error) {
    signal.throwIfAborted();
    if (refusalOf(error) === undefined && !(isAgentError(error) && error.code === "SOURCE_PROTOCOL")) throw error;
    return undefined;
  }
}

export function refusal(message: string, hint: string, cause?: unknown): AgentError {
  return new AgentError("SOURCE_REFUSED", message, { hint, ...(cause !== undefined && { cause }) });
}

/** Whether the status is a refusal, what it means, and what the operator can do. */
type Remedy = readonly [refused: boolean, text: string, hint: string];

const trustThere = "trust the agent's certificate at the server; tagferry trust list shows it";
const anotherCertificate = "delete pki/own in the data directory for a new certificate, or ask the server's operator";
export const ownFiles = "set certFile and keyFile to files that belong together";
const clocks = "compare the clocks of both machines";
export const offers = "tagferry browse URL --endpoints lists what the server offers";
const wait = "the agent tries again; if this goes on, look at the server";
const free = "close a client of the server, or raise its limit";
/** A refusal. By default it concerns the agent's own certificate. */
const finds = (what: string, hint = anotherCertificate): Remedy => [true, `the server ${what}`, hint];
const login = finds("refuses this user or password, or does not trust userCertificate", credentialsHint);
const untrusted = finds("does not trust this agent", trustThere);
const badCertificate = finds("does not accept this agent's certificate");
const services = "its documentation lists the services it supports";

/** Statuses without an entry are shown by name. */
const remedies: Readonly<Record<string, Remedy>> = {
  BadUserAccessDenied: login,
  BadIdentityTokenRejected: login,
  BadUserSignatureInvalid: finds("finds that userCertificate and its key do not belong together", ownFiles),
  BadIdentityTokenInvalid: finds("does not accept this kind of login", offers),
  BadSecurityChecksFailed: untrusted,
  BadCertificateUntrusted: untrusted,
  BadCertificateInvalid: badCertificate,
  BadCertificateUseNotAllowed: badCertificate,
  BadCertificatePolicyCheckFailed: finds("requires a longer or a shorter key in this agent's certificate"),
  BadCertificateUriInvalid: finds("finds another application URI in this agent's certificate"),
  BadCertificateHostNameInvalid: finds("finds another host name in this agent's certificate"),
  BadCertificateTimeInvalid: finds("finds this agent's certificate out of date", clocks),
  BadCertificateRevoked: finds("finds this agent's certificate revoked"),
  BadSecurityModeRejected: finds("refuses this security mode", offers),
  BadSecurityPolicyRejected: finds("refuses this security policy", offers),
  BadServiceUnsupported: [false, "the server does not support this service", services],
  BadTooManySessions: [false, "all sessions of the server are taken", free],
  BadMaxConnectionsReached: [false, "all connections of the server are taken", free],
  BadTcpEndpointUrlInvalid: [false, "the server expects its own address", "set endpointHost: server"],
  BadTcpServerTooBusy: [false, "the server is too busy", wait],
  BadServerHalted: [false, "the server is stopped", wait],
  BadShutdown: [false, "the server is being stopped", wait],
  BadTimeout: [false, "no answer in time", wait],
  BadRequestTimeout: [false, "no answer in time", wait],
};

const networkFaults: Readonly<Record<string, string>> = {
  ECONNREFUSED: "nothing listens there",
  ECONNRESET: "the connection was cut",
  EPIPE: "the connection was cut",
  ENOTFOUND: "the name of the host is not known",
  EAI_AGAIN: "the name server does not answer",
  ETIMEDOUT: "no answer in time",
  EHOSTUNREACH: "no route to this host",
  ENETUNREACH: "no route to this network",
};

/** `SOURCE_REFUSED` if the server refused the agent, else `SOURCE_UNREACHABLE`, with `error` as the cause. */
export function sourceError(error: unknown, doing: string): AgentError {
  if (isAgentError(error)) return error;
  // The stack's message if a server sends more than the limits of the transport.
  if (error instanceof Error && /max (?:message size|chunk count) exceeded/.test(error.message)) {
    const limit = formatByteSize(largestMessageBytes);
    const hint = "leave large arrays and images out of the tags, or let the server send larger messages";
    const message = `${doing}: the server sent a message of more than ${limit}`;
    return new AgentError("SOURCE_UNREACHABLE", message, { cause: error, hint });
  }
  const status = statusOf(error);
  const [refused, text, known] = remedies[status ?? ""] ?? [];
  const hint = known ?? (status && "the documentation of the server says what this status means");
  const what =
    status === undefined ? networkText(error) : text ? `${text} (${status})` : `the server answers ${status}`;
  return new AgentError(refused ? "SOURCE_REFUSED" : "SOURCE_UNREACHABLE", `${doing}: ${what}`, {
    cause: error,
    ...(hint && { hint }),
  });
}

function networkText(error: unknown): string {
  const text = reasonOf(error);
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

/** Whether the other side ended the connection, judged by the stack's message. */
function hungUp(error: unknown): boolean {
  const text = reasonOf(error);
  return hangingUp.test(text) && !/ECONNREFUSED|timeout/i.test(text);
}

/**
 * Explains a failure to open a secure channel and names the certificate that the server must trust. Some servers hang
 * up on an untrusted agent without an answer. They have just listed their endpoints, so the network works.
 */
export function channelError(
  error: unknown,
  { thumbprint, certificateFile }: { readonly thumbprint: string; readonly certificateFile: string },
  security: string,
  now: Date,
): unknown {
  if (!isAgentError(error)) return error;
  const isUnreachable = error.code === "SOURCE_UNREACHABLE";
  if (isUnreachable && /no answer (?:in time|within)/.test(error.message))
    return new AgentError(
      "SOURCE_UNREACHABLE",
      `the server has just listed ${security}, but does not answer a request to open such a channel; it may not support it`,
      { cause: error, hint: `choose another endpoint with security: { mode, policy }; ${offers}` },
    );
  const speechless = isUnreachable && statusOf(error) === undefined && hungUp(error.cause);
  if (!speechless && error.code !== "SOURCE_REFUSED") return error;
  const what = speechless ? "the server hangs up, most likely because it does not trust this agent" : error.message;
  const clock = statusOf(error) === "BadCertificateTimeInvalid" ? `; this clock says ${now.toISOString()}` : "";
  const message = `${what}${clock}; the certificate to trust there is ${thumbprint}, ${certificateFile} (tagferry trust list shows it)`;
  const hint =
    "the server's operator trusts the agent's certificate there, often by moving it out of a folder of rejected ones";
  return refusal(message, hint, error);
}
