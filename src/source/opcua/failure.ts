// What the stack and servers say when something fails, in the agent's codes and with what to do about it.
import { AgentError, isAgentError } from "../../core/errors.ts";

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

/** What to do about a status. The others speak for themselves. */
const remedies: Readonly<Record<string, { readonly refused: boolean; readonly text: string }>> = {
  BadUserAccessDenied: { refused: true, text: "the server refuses this user or password" },
  BadIdentityTokenRejected: { refused: true, text: "the server refuses this user or password" },
  BadIdentityTokenInvalid: { refused: true, text: "the server does not take this kind of login" },
  BadSecurityChecksFailed: { refused: true, text: "the server does not trust this agent; trust its certificate there" },
  BadCertificateUntrusted: { refused: true, text: "the server does not trust this agent; trust its certificate there" },
  BadCertificateInvalid: { refused: true, text: "the server does not take this agent's certificate" },
  BadCertificateUseNotAllowed: { refused: true, text: "the server does not take this agent's certificate" },
  BadCertificateUriInvalid: {
    refused: true,
    text: "the server finds another application URI in this agent's certificate",
  },
  BadCertificateHostNameInvalid: { refused: true, text: "the server finds another host in this agent's certificate" },
  BadCertificateTimeInvalid: {
    refused: true,
    text: "the server finds this agent's certificate out of date; compare both clocks",
  },
  BadSecurityModeRejected: { refused: true, text: "the server refuses this security mode" },
  BadSecurityPolicyRejected: { refused: true, text: "the server refuses this security policy" },
  BadTooManySessions: { refused: false, text: "all sessions of the server are taken; close one or raise its limit" },
  BadMaxConnectionsReached: { refused: false, text: "all connections of the server are taken" },
  BadTcpEndpointUrlInvalid: { refused: false, text: "the server expects its own address; try endpointHost: server" },
};

/** Any failure as an `AgentError`: `SOURCE_REFUSED` where the server turned us away, else `SOURCE_UNREACHABLE`. */
export function sourceError(error: unknown, doing: string): AgentError {
  if (isAgentError(error)) return error;
  const text = (error instanceof Error ? error.message : String(error)).replaceAll(/\s+/g, " ").trim();
  const remedy = remedies[statusOf(error) ?? ""];
  const code = remedy?.refused ? "SOURCE_REFUSED" : "SOURCE_UNREACHABLE";
  return new AgentError(code, `${doing}: ${remedy ? `${remedy.text} (${text})` : text}`, { cause: error });
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
export function channelError(error: unknown, { thumbprint, certificateFile }: OwnCertificate): unknown {
  if (!isAgentError(error)) return error;
  const speechless = error.message.includes("may have been rejected by server");
  if (!speechless && error.code !== "SOURCE_REFUSED") return error;
  const what = speechless ? "the server hangs up, most likely because it does not trust this agent" : error.message;
  const message = `${what}; the certificate to trust there is ${thumbprint}, ${certificateFile}`;
  return new AgentError("SOURCE_REFUSED", message, { cause: error });
}
