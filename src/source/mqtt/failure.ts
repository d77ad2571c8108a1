// Why a connection did not come about or was lost, as an error that names broker, user and remedy.
import { AgentError, type ErrorCode } from "../../core/errors.ts";
import { describeReason, errorCodeOf, wantsOtherVersion } from "./reason-code.ts";

/** What was tried, for messages. */
export interface Attempt {
  /** As in the configuration, without credentials. */
  readonly url: string;
  readonly username: string | undefined;
  readonly clientId: string;
  readonly protocolVersion: 3 | 4 | 5;
}

/** The first things that went wrong on a connection, which are the cause of all that follows. */
export class FailureRecord {
  #error: Error | undefined;
  #disconnectReason: number | undefined;

  note(error: Error): void {
    this.#error ??= error;
  }

  disconnected(reason: number | undefined): void {
    this.#disconnectReason ??= reason ?? 0;
  }

  get error(): Error | undefined {
    return this.#error;
  }

  /** The reason code of the broker's DISCONNECT, if it sent one. */
  get disconnectReason(): number | undefined {
    return this.#disconnectReason;
  }
}

/** A connection that did not come about. */
export interface Failure {
  readonly error: AgentError;
  /** Whether an older version of the protocol may be understood: the broker said so, or hung up without a word. */
  readonly olderVersion: "asked for" | "perhaps" | "no";
}

/** Explains a connection that ended before a good CONNACK. */
export function explainFailure(attempt: Attempt, { error, disconnectReason }: FailureRecord): Failure {
  const cause = error && { cause: error };
  const refusal = disconnectReason ?? reasonOf(error);
  if (refusal !== undefined) {
    const whom = asWhom(attempt);
    return {
      error: new AgentError(
        errorCodeOf(refusal),
        `${attempt.url} refused the connection ${whom}: ${describeReason(refusal)}`,
        cause,
      ),
      olderVersion: wantsOtherVersion(refusal) ? "asked for" : "no",
    };
  }
  if (error === undefined) {
    const message = `${attempt.url} closed the connection without an answer; is it an MQTT broker, and does it want TLS?`;
    return { error: new AgentError("SOURCE_PROTOCOL", message), olderVersion: "perhaps" };
  }
  const { code, text } = explainError(error);
  return {
    error: new AgentError(code, `${attempt.url}: ${text}`, cause),
    // Neither a parser's complaint about the answer nor a reset says that the broker is not there.
    olderVersion: code === "SOURCE_PROTOCOL" || systemCode(error) === "ECONNRESET" ? "perhaps" : "no",
  };
}

/** Explains the loss of a connection that was good. */
export function explainLoss(attempt: Attempt, { error, disconnectReason }: FailureRecord): AgentError {
  const cause = error && { cause: error };
  if (disconnectReason !== undefined && disconnectReason !== 0)
    return new AgentError(
      errorCodeOf(disconnectReason),
      `${attempt.url} ended the connection of client ${attempt.clientId}: ${describeReason(disconnectReason)}`,
      cause,
    );
  if (error) {
    const { code, text } = explainError(error);
    return new AgentError(code, `connection to ${attempt.url} lost: ${text}`, cause);
  }
  return new AgentError(
    "SOURCE_UNREACHABLE",
    `${attempt.url} closed the connection; if this repeats at once, client identifier ${attempt.clientId} may be in use elsewhere`,
  );
}

/** `as user gw1 with client north-hall`, as far as it is known. */
function asWhom({ username, clientId }: Attempt): string {
  return `of ${username === undefined ? "nobody (no username configured)" : `user ${username}`}, client ${clientId}`;
}

/** The reason code in a refusal, which the library puts in `code` as a number. */
function reasonOf(error: Error | undefined): number | undefined {
  return error && "code" in error && typeof error.code === "number" && error.message.startsWith("Connection refused")
    ? error.code
    : undefined;
}

/** System and TLS errors that an operator meets, with what to do about them. */
const explanations: Readonly<Record<string, { readonly code: ErrorCode; readonly text: string }>> = {
  ECONNREFUSED: { code: "SOURCE_UNREACHABLE", text: "connection refused: nothing listens on this port" },
  ENOTFOUND: { code: "SOURCE_UNREACHABLE", text: "the name of the host is not known" },
  EAI_AGAIN: { code: "SOURCE_UNREACHABLE", text: "the name of the host cannot be looked up now" },
  EHOSTUNREACH: { code: "SOURCE_UNREACHABLE", text: "there is no way to this host" },
  ENETUNREACH: { code: "SOURCE_UNREACHABLE", text: "there is no way to this network" },
  ETIMEDOUT: { code: "SOURCE_UNREACHABLE", text: "the host does not answer" },
  ECONNRESET: { code: "SOURCE_UNREACHABLE", text: "the connection was reset" },
  EPIPE: { code: "SOURCE_UNREACHABLE", text: "the connection was reset" },
  DEPTH_ZERO_SELF_SIGNED_CERT: { code: "SOURCE_REFUSED", text: "its certificate is self-signed; name it in caFile" },
  SELF_SIGNED_CERT_IN_CHAIN: {
    code: "SOURCE_REFUSED",
    text: "its certificate was issued by an authority that is not trusted; name that in caFile",
  },
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: {
    code: "SOURCE_REFUSED",
    text: "its certificate was issued by an authority that is not trusted; name that in caFile",
  },
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: {
    code: "SOURCE_REFUSED",
    text: "its certificate was issued by an authority that is not trusted; name that in caFile",
  },
  CERT_HAS_EXPIRED: { code: "SOURCE_REFUSED", text: "its certificate has expired" },
  CERT_NOT_YET_VALID: {
    code: "SOURCE_REFUSED",
    text: "its certificate is not valid yet; is the clock of this machine right?",
  },
  ERR_SSL_WRONG_VERSION_NUMBER: {
    code: "SOURCE_PROTOCOL",
    text: "it does not speak TLS on this port; use mqtt:// or the port for TLS",
  },
  ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED: {
    code: "SOURCE_REFUSED",
    text: "it asks for a certificate; set certFile and keyFile",
  },
};

function explainError(error: Error): { readonly code: ErrorCode; readonly text: string } {
  const code = systemCode(error);
  const known = code === undefined ? undefined : explanations[code];
  if (known) return known;
  if (code === "ERR_TLS_CERT_ALTNAME_INVALID")
    return { code: "SOURCE_REFUSED", text: `${error.message}; set serverName to a name in the certificate` };
  if (/alert|handshake/i.test(error.message) && code?.startsWith("ERR_SSL"))
    return { code: "SOURCE_REFUSED", text: `TLS failed: ${error.message}` };
  if (error.message === "connack timeout")
    return { code: "SOURCE_UNREACHABLE", text: "no answer within connectTimeout" };
  if (error.message === "Keepalive timeout")
    return { code: "SOURCE_UNREACHABLE", text: "nothing was heard for one and a half times keepalive" };
  if (code !== undefined && typeof code === "string" && /^E[A-Z]+$/.test(code))
    return { code: "SOURCE_UNREACHABLE", text: messageOf(error) };
  return { code: "SOURCE_PROTOCOL", text: messageOf(error) };
}

/** A host with several addresses fails with all their errors in one, which itself says nothing. */
function messageOf(error: Error): string {
  if (error.message !== "" || !(error instanceof AggregateError)) return error.message || error.name;
  return error.errors.map((inner) => (inner instanceof Error ? inner.message : String(inner))).join("; ");
}

function systemCode(error: Error): string | undefined {
  return "code" in error && typeof error.code === "string" ? error.code : undefined;
}
