// Explains why a connection failed or was lost, as an error with broker, user and remedy.
import { z } from "zod";
import { AgentError, type ErrorCode, reasonOf } from "../../../core/errors.ts";
import type { Clock } from "../../../core/runtime.ts";
import { meaningOf, wantsOtherVersion } from "./reason-code.ts";

export interface Attempt {
  readonly url: string;
  readonly username: string | undefined;
  readonly clientId: string;
  readonly protocolVersion: 3 | 4 | 5;
}

/** The URL for logs and messages. Its query is hidden, since any parameter may hold a token. */
export function shownUrl(url: string): string {
  return url.replace(/[?#].*$/s, "?***");
}

/** The first errors of a connection, which caused all later ones. */
export interface FailureRecord {
  error?: Error;
  /** Reason code of the broker's DISCONNECT, if any. */
  disconnectReason?: number;
}

export interface ConnectFailure {
  readonly error: AgentError;
  /** Whether an older protocol version may work: the broker requested one, or disconnected without a reason. */
  readonly olderVersion: "asked for" | "perhaps" | "no";
}

/** Explains a connection that ended before a successful CONNACK. */
export function explainFailure(attempt: Attempt, { error, disconnectReason }: FailureRecord): ConnectFailure {
  const cause = error && { cause: error };
  const refusal = disconnectReason ?? reasonCodeOf(error);
  if (refusal !== undefined) {
    const { url, username, clientId } = attempt;
    const whom = `${username === undefined ? "without a user name" : `as user ${username}`}, client ${clientId}`;
    const { text, code, hint } = meaningOf(refusal);
    return {
      error: new AgentError(code, `${url} refused the connection ${whom}: ${text}`, { ...cause, hint }),
      olderVersion: wantsOtherVersion(refusal) ? "asked for" : "no",
    };
  }
  if (error === undefined) {
    const message = `${attempt.url} closed the connection without an answer`;
    const hint =
      "check that an MQTT broker listens on this port, and whether it expects TLS (mqtts://) or WebSockets (ws://)";
    return { error: new AgentError("SOURCE_PROTOCOL", message, { hint }), olderVersion: "perhaps" };
  }
  const { code, text, hint } = explainError(error);
  return {
    error: new AgentError(code, `${attempt.url}: ${text}`, { cause: error, hint }),
    // Neither an unreadable answer nor a reset means that no broker is there.
    olderVersion: code === "SOURCE_PROTOCOL" || systemCode(error) === "ECONNRESET" ? "perhaps" : "no",
  };
}

/** The loss of an established connection. `silent`: the broker closed or reset it without a reason. */
export interface ConnectionLoss {
  readonly error: AgentError;
  readonly silent: boolean;
}

/** Explains the loss of an established connection. */
export function explainLoss(attempt: Attempt, record: FailureRecord): ConnectionLoss {
  const code = record.error && systemCode(record.error);
  const silent = record.error === undefined || code === "ECONNRESET" || code === "EPIPE";
  return { error: lossError(attempt, record), silent: silent && record.disconnectReason === undefined };
}

function lossError(attempt: Attempt, { error, disconnectReason }: FailureRecord): AgentError {
  const cause = error && { cause: error };
  if (disconnectReason !== undefined && disconnectReason !== 0) {
    const { text, code, hint } = meaningOf(disconnectReason);
    return new AgentError(code, `${attempt.url} ended the connection of client ${attempt.clientId}: ${text}`, {
      ...cause,
      hint: code === "SOURCE_TAKEN_OVER" ? takeoverHint(attempt.clientId) : hint,
    });
  }
  if (error) {
    const { code, text, hint } = explainError(error);
    return new AgentError(code, `connection to ${attempt.url} lost: ${text}`, { cause: error, hint });
  }
  return new AgentError("SOURCE_UNREACHABLE", `${attempt.url} closed the connection`, {
    hint: `the broker gave no reason: it was stopped, or, if this repeats at once, another client uses client identifier ${attempt.clientId}`,
  });
}

function takeoverHint(clientId: string): string {
  return `find the other client that uses ${clientId}, and set another clientId on one of them; the default is <agent.name>-<source name>, so two agents need two names. Each of them misses the messages that the other one receives`;
}

/** The reason code of a refusal, which the library stores in `code` as a number. */
function reasonCodeOf(error: Error | undefined): number | undefined {
  return error && "code" in error && typeof error.code === "number" && error.message.startsWith("Connection refused")
    ? error.code
    : undefined;
}

interface Explanation {
  readonly code: ErrorCode;
  readonly text: string;
  /** The remedy, if the hint of the code does not fit. */
  readonly hint?: string;
}

const unreachable = (text: string): Explanation => ({ code: "SOURCE_UNREACHABLE", text });
const refused = (text: string, hint: string): Explanation => ({ code: "SOURCE_REFUSED", text, hint });
const wasReset = unreachable("the connection was reset");
const untrustedIssuer = refused(
  "the issuer of its certificate is not trusted",
  "set caFile to the PEM file with the certificate of the issuer (the CA of the plant)",
);

const explanations: Readonly<Record<string, Explanation>> = {
  ECONNREFUSED: unreachable("connection refused: nothing listens on this port"),
  ENOTFOUND: unreachable("the name of the host is not known"),
  EAI_AGAIN: unreachable("the name of the host cannot be looked up now"),
  EHOSTUNREACH: unreachable("no route to this host"),
  ENETUNREACH: unreachable("no route to this network"),
  ETIMEDOUT: unreachable("the host does not answer"),
  ECONNRESET: wasReset,
  EPIPE: wasReset,
  DEPTH_ZERO_SELF_SIGNED_CERT: refused(
    "its certificate is self-signed and not trusted",
    "set caFile to the PEM file with this certificate",
  ),
  SELF_SIGNED_CERT_IN_CHAIN: untrustedIssuer,
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: untrustedIssuer,
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: untrustedIssuer,
  UNABLE_TO_GET_ISSUER_CERT: refused(
    "the issuer of its certificate was issued by another authority, which is not trusted",
    "add the certificates of all authorities above the issuer to caFile, up to the root",
  ),
  CERT_HAS_EXPIRED: refused(
    "its certificate has expired",
    "renew the certificate of the broker; if it is still valid, set the clock of this machine",
  ),
  CERT_NOT_YET_VALID: refused(
    "its certificate is not valid yet",
    "set the clock of this machine, or renew the certificate of the broker",
  ),
  ERR_SSL_WRONG_VERSION_NUMBER: {
    code: "SOURCE_PROTOCOL",
    text: "this port does not speak TLS",
    hint: "use the port of the broker for TLS, usually 8883; without TLS the URL begins with mqtt:// or ws://",
  },
  ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED: refused(
    "the broker requires a client certificate",
    "set certFile and keyFile",
  ),
};

/** Node's names of further OpenSSL certificate errors. */
const certificateFault =
  /^(CERT_|INVALID_(CA|PURPOSE)$|PATH_LENGTH_EXCEEDED$|HOSTNAME_MISMATCH$|UNABLE_TO_|CRL_|ERROR_IN_C|UNSPECIFIED$)/;

function explainError(error: Error): Explanation {
  const code = systemCode(error);
  const known = code === undefined ? undefined : explanations[code];
  if (known) return known;
  if (code === "ERR_TLS_CERT_ALTNAME_INVALID") return otherName(error);
  if (code?.startsWith("ERR_OSSL"))
    return refused(
      `certFile or keyFile cannot be used (${code})`,
      "both must be PEM files; keyFile is the key of the certificate in certFile, without a passphrase",
    );
  if (code !== undefined && certificateFault.test(code))
    return refused(
      `its certificate cannot be verified: ${error.message}`,
      "let the operator of the broker renew its certificate, or correct caFile if it has another issuer",
    );
  if (code?.startsWith("ERR_SSL"))
    return refused(
      `TLS failed: ${code}`,
      "compare the TLS versions and, where the broker requires a client certificate, certFile and keyFile with what the broker accepts",
    );
  if (error.message === "connack timeout") return unreachable("no answer within connectTimeout");
  if (error.message === "Keepalive timeout")
    return unreachable("nothing was received for one and a half times keepalive");
  if (code !== undefined && /^E[A-Z]+$/.test(code)) return unreachable(messageOf(error));
  return { code: "SOURCE_PROTOCOL", text: `what came is not valid MQTT (${messageOf(error)})` };
}

/** Lists the names of a certificate that does not match the host. */
function otherName(error: Error): Explanation {
  const { host, cert } = nameMismatch.parse(error);
  const alternative = (cert?.subjectaltname ?? "").split(/, ?/).map((name) => name.replace(/^(DNS|IP Address):/, ""));
  // The subject counts only if the certificate has no alternative names.
  const names = alternative.filter((name) => name !== "");
  const all = names.length > 0 ? names : [cert?.subject?.CN ?? []].flat();
  const found = all.length === 0 ? "it has no name" : `it is valid for ${all.join(", ")}`;
  return refused(
    `its certificate is not valid for ${host ?? "this host"}; ${found}`,
    all.length === 0
      ? "renew the certificate of the broker with its name, or set verify: ca, which checks the issuer alone"
      : `use ${all.length === 1 ? "this name" : "one of these names"} in the URL, or set serverName to it`,
  );
}

const subject = z.object({ CN: z.union([z.string(), z.array(z.string())]).optional() });
const certificate = z.object({ subjectaltname: z.string().optional(), subject: subject.optional() });
const nameMismatch = z.object({
  host: z.string().optional().catch(undefined),
  cert: certificate.optional().catch(undefined),
});

/** A host with several addresses fails with an AggregateError, whose own message is empty. */
function messageOf(error: Error): string {
  if (error.message !== "" || !(error instanceof AggregateError)) return error.message || error.name;
  return error.errors.map((inner) => reasonOf(inner)).join("; ");
}

function systemCode(error: Error): string | undefined {
  const code = "code" in error && typeof error.code === "string" ? error.code : undefined;
  // OpenSSL errors during a write have the code EPROTO; the OpenSSL code is in the message only.
  const reason = code === "EPROTO" ? /:error:[0-9A-F]+:[^:]*:[^:]*:([^:\n]+)/.exec(error.message)?.[1] : undefined;
  return reason === undefined ? code : `ERR_SSL_${reason.toUpperCase().replaceAll(" ", "_")}`;
}

// Detects that another client repeatedly takes over the session. Many MQTT 5 brokers report this with a reason code.
// MQTT 3.1.1 brokers, and mosquitto 2.0.11 with MQTT 5, close the connection without a reason, as they also do when
// they stop. After a takeover, however, the broker accepts a new connection at once.
//
// Where the broker ends a connection depends on the load: before it answers the subscriptions, or while it has not read
// what we sent. In the second case the kernel resets the connection, and a reason sent before may be lost.

/** Connections closed within this time are suspicious, in milliseconds: the longest pause of another agent. */
const soonMs = 30_000;
/** As `soonMs`, once a takeover is detected. Both clients then wait longer (`takeoverPause`). */
const soonAfterMs = 120_000;
/** Suspicious connections in a row that count as a takeover. A few may also come from an unreliable network. */
const suspicious = 5;
/**
 * A proxy that disconnects every 60 s resembles another agent that waits 60 s, except for its precision. Pauses of
 * agents vary by up to a fifth (`takeoverPause`). `oftenAlike` connections in a row, each longer than `soonMs` and
 * equally long within `alikeMs`, indicate a proxy.
 */
const alikeMs = 500;
const oftenAlike = 4;

/** Observes the successive connections of one source. */
export class TakeoverWatch {
  #closings = 0;
  #lastedMs = 0;
  #alike = 0;
  #last: AgentError | undefined;

  /** Call if no broker could be used, with the reasons. One of them may be a loss that `lost` has counted. */
  openFailed(failures: readonly AgentError[]): void {
    if (!this.#last || !failures.includes(this.#last)) this.#closings = 0;
  }

  /** Call when a connection is established. Call the result when it is lost; it returns the error with the cause. */
  established(attempt: Attempt, clock: Pick<Clock, "monotonic">): (loss: ConnectionLoss) => AgentError {
    const since = clock.monotonic();
    return ({ error, silent }) => this.lost(error, attempt, { lastedMs: clock.monotonic() - since, silent });
  }

  /** Call after an established connection of `lastedMs` ended. Returns the error that explains the cause. */
  lost(error: AgentError, attempt: Attempt, { lastedMs, silent }: { lastedMs: number; silent: boolean }): AgentError {
    if (error.code === "SOURCE_TAKEN_OVER") {
      this.#closings = suspicious;
      return (this.#last = error);
    }
    const isSoon = lastedMs < (this.#closings < suspicious ? soonMs : soonAfterMs);
    const isAlike = lastedMs >= soonMs && Math.abs(lastedMs - this.#lastedMs) < alikeMs;
    this.#alike = isAlike ? this.#alike + 1 : 0;
    this.#lastedMs = lastedMs;
    this.#closings = silent && isSoon && this.#alike < oftenAlike ? this.#closings + 1 : 0;
    const { url, clientId } = attempt;
    const text = `${url} repeatedly accepts client ${clientId} and closes the connection without a reason: another client with the same client identifier takes over the session, or the broker does not permit what is subscribed`;
    const hint = takeoverHint(clientId);
    return (this.#last = this.#closings < suspicious ? error : new AgentError("SOURCE_TAKEN_OVER", text, { hint }));
  }
}

const watches = new WeakMap<object, TakeoverWatch>();

/** The watch of a source, shared by all its connections. `config` identifies the source. */
export function takeoverWatchOf(config: object): TakeoverWatch {
  const watch = watches.get(config) ?? new TakeoverWatch();
  watches.set(config, watch);
  return watch;
}
