// Calls the service, and interprets the answers.
import { AgentError, isAgentError, reasonOf } from "../../core/errors.ts";
import type { Runtime } from "../../core/runtime.ts";
import type { Outcome, RequestTurn } from "../../core/sink.ts";
import { type RpcErrorObject, rpcErrors, rpcResponse } from "../../wire/json-rpc.ts";
import { type ApiVersion, versionHeader } from "../../wire/method.ts";
import type { NetworkBytes, Resolve } from "./connections.ts";
import { type Credentials, withoutCredentials } from "./credentials.ts";
import { type HttpAnswer, NotSentError, openHttpPost } from "./http-post.ts";
import type { ServiceOptions } from "./options.ts";

export interface Call {
  readonly id: number;
  readonly body: Uint8Array;
  /** Longer answers are rejected. */
  readonly maxAnswerBytes: number;
  /** Undefined: the configured version. */
  readonly apiVersion?: ApiVersion;
  /** True: the answer is known. It is not parsed, and the result is `repeatedResult`. */
  readonly isRepeated?: (answer: Buffer) => boolean;
  readonly turn?: RequestTurn | undefined;
}

export const repeatedResult: Readonly<Record<string, unknown>> = {};

/**
 * Outcome of a call before its result is interpreted, in the terms of `Outcome`. `throttled` with 0 ms: the credentials
 * were renewed, or the turn ended before sending; the call may be repeated in its next turn.
 */
export type CallOutcome =
  | { readonly kind: "done"; readonly result: Readonly<Record<string, unknown>> }
  | { readonly kind: "partly"; readonly error: RpcErrorObject }
  | {
      readonly kind: "refused";
      readonly code: number;
      readonly reason: string;
      readonly faults: readonly RequestFault[];
    }
  /** `answered`: the service itself reported it in JSON-RPC, not the network or an intermediary. */
  | (Extract<Outcome, { readonly kind: "unavailable" }> & { readonly answered: boolean })
  /** `answered`: as above. The method or the content is not permitted; the credentials are valid. */
  | (Extract<Outcome, { readonly kind: "unauthorized" }> & { readonly answered: boolean })
  | Exclude<
      Outcome,
      { readonly kind: "accepted" | "partial" | "unconfirmed" | "refused" | "unavailable" | "unauthorized" }
    >;

/** What the service objects to in a request. `text`: the path and the reason, for people. */
export interface RequestFault {
  readonly path: string;
  readonly text: string;
}

/** A request of at most this size that gets no answer has another cause, in bytes. */
const mostUncutBytes = 2 ** 16;
/** HTTP statuses for which the length of a request may be the cause. */
const aboutLength: ReadonlySet<number> = new Set([408, 429, 504]);
/** Consecutive requests that are cut off before the caller makes them shorter. */
export const mostCuts = 2;

/** Bytes for envelope and error texts of an answer. */
export const answerBytes = 2 ** 20;

export interface RpcClientParts {
  readonly options: ServiceOptions;
  readonly credentials: Credentials;
  readonly agent: string;
  /** Name resolution. Undefined: that of the system. */
  readonly resolve?: Resolve | undefined;
  readonly traffic?: NetworkBytes | undefined;
}

export type RpcClient = Awaited<ReturnType<typeof openRpcClient>>;

/** Does not connect yet. Rejects with `SERVICE_UNREACHABLE` if `caFile` is unreadable. */
export async function openRpcClient(parts: RpcClientParts, runtime: Runtime) {
  const { options, credentials, agent, resolve, traffic } = parts;
  const { proxy, caFile } = options;
  const url = `${options.url.replace(/\/+$/, "")}/rpc`;
  const http = await openHttpPost({ url, proxy, caFile, connections: 4, resolve, traffic }, runtime.clock);

  return {
    /** Resolves with the outcome. Rejects with `signal.reason` only. */
    async call(
      { id, body, maxAnswerBytes, apiVersion, isRepeated, turn }: Call,
      signal: AbortSignal,
    ): Promise<CallOutcome> {
      let authorization: string;
      let answer: HttpAnswer;
      let isBegun = false;
      const start = () => (isBegun = turn?.start() !== false);
      const isLong = body.length > mostUncutBytes;
      try {
        authorization = await credentials.authorization(signal);
        const headers = {
          authorization,
          "content-type": "application/json",
          accept: "application/json",
          "user-agent": agent,
          [versionHeader]: apiVersion ?? options.apiVersion,
        };
        answer = await http.post(body, headers, maxAnswerBytes, signal, { start });
      } catch (error) {
        if (signal.aborted) throw signal.reason;
        if (error instanceof NotSentError) return { kind: "throttled", retryAfterMs: 0 };
        if (isAgentError(error, "SERVICE_REFUSED"))
          return { kind: "unauthorized", reason: error.message, answered: false };
        const cause = isAgentError(error)
          ? error
          : new AgentError("SERVICE_UNREACHABLE", reasonOf(error), { cause: error });
        return { kind: "unavailable", cause, answered: false, isCut: isBegun && isLong };
      }
      const { status, ok, headers } = answer;
      if (ok && isRepeated?.(answer.body)) return { kind: "done", result: repeatedResult };
      const clean: Clean = (text) => withoutCredentials(text, authorization);
      const verdict = ok
        ? verdictOnBody(answer, id, clean)
        : verdictOnStatus(answer, timeOf(headers) ?? runtime.clock.now() / 1_000, clean);
      if ((verdict.kind === "unavailable" || verdict.kind === "throttled") && aboutLength.has(status))
        return { ...verdict, isCut: isLong };
      const lacking = lackingIn(status, verdict);
      return lacking && credentials.renew(authorization, lacking) ? { kind: "throttled", retryAfterMs: 0 } : verdict;
    },
    /** As `HttpPost.connects`. */
    connects(signal: AbortSignal): Promise<boolean> {
      return http.connects(signal);
    },
    [Symbol.asyncDispose](): Promise<void> {
      return http[Symbol.asyncDispose]();
    },
  };
}

/** What new credentials may correct. */
function lackingIn(status: number, verdict: CallOutcome): "validity" | "rights" | undefined {
  if (status === 401) return "validity";
  return status === 403 || (verdict.kind === "unauthorized" && verdict.answered) ? "rights" : undefined;
}

type Clean = (text: string) => string;

/**
 * Only a JSON-RPC 2.0 result with the right ID is success; otherwise the points may or may not be stored. Any status of
 * success may come with it: the service answers 200, a gateway before it possibly another one.
 */
function verdictOnBody({ status, text }: HttpAnswer, id: number, clean: Clean): CallOutcome {
  const answer = status === 200 ? "the answer" : `the answer with HTTP ${status}`;
  let body: unknown;
  try {
    body = JSON.parse(text);
  } catch {
    // The parser's error would quote the answer.
    return unavailable(`${answer} is not JSON; does a proxy or portal answer in place of the service?`);
  }
  const parsed = rpcResponse.safeParse(body);
  if (!parsed.success) return unavailable(`${answer} is not a JSON-RPC 2.0 response`);
  const response = parsed.data;
  // A refused request may have been unreadable up to its ID.
  if (response.id !== id && !("error" in response && response.id === null))
    return unavailable(`the answer is to request ${response.id}, not ${id}`);
  return "result" in response ? { kind: "done", result: response.result } : verdictOnError(response.error, clean);
}

function verdictOnError(error: RpcErrorObject, clean: Clean): CallOutcome {
  const reason = clean(`${error.message} (${error.code}${error.data?.trace ? `, trace ${error.data.trace}` : ""})`);
  switch (error.code) {
    case rpcErrors.invalidRequest.code:
    case rpcErrors.invalidParams.code:
    case rpcErrors.produceInvalidResource.code: {
      const params = Object.entries(error.data?.params ?? {}).map(([path, texts]) => [path, texts.join(", ")] as const);
      const resources = error.data?.invalidResources?.map(({ id = "?", message }) => [id, message] as const) ?? [];
      const faults = [...params, ...resources].map(([path, text]) => ({ path, text: clean(`${path}: ${text}`) }));
      const detail = faults
        .slice(0, 5)
        .map(({ text }) => text)
        .join("; ")
        .slice(0, 500);
      return { kind: "refused", code: error.code, reason: detail ? `${reason}: ${detail}` : reason, faults };
    }
    case rpcErrors.partialFailure.code:
      return { kind: "partly", error: cleaned(error, clean) };
    case rpcErrors.forbidden.code:
      return { kind: "unauthorized", reason, answered: true };
    case rpcErrors.tryAgain.code:
      return { kind: "throttled", retryAfterMs: 1_000, isServerError: true };
    default:
      return { ...unavailable(reason, failing), answered: true, isServerError: true };
  }
}

/** Messages about single resources appear in the log and in the rejects. */
function cleaned({ code, message, data }: RpcErrorObject, clean: Clean): RpcErrorObject {
  const invalidResources = data?.invalidResources?.map(({ message: text, invalidFields, ...one }) => {
    const fields = Object.entries(invalidFields ?? {}).map(([path, texts]) => [path, texts.map(clean)]);
    return { ...one, message: clean(text), invalidFields: Object.fromEntries(fields) };
  });
  return { code, message: clean(message), data: data && { ...data, ...(invalidResources && { invalidResources }) } };
}

function verdictOnStatus({ status, headers, text }: HttpAnswer, nowMs: number, clean: Clean): CallOutcome {
  const reason = `HTTP ${status}${excerpt(clean(text))}`;
  if (status === 401 || status === 403 || status === 407) return { kind: "unauthorized", reason, answered: false };
  if (status >= 300 && status < 400)
    return {
      kind: "unauthorized",
      reason: `HTTP ${status}: redirects are not followed`,
      hint: "set service.url to the address of the service itself; a portal or proxy may redirect",
      answered: false,
    };
  if (status === 413) return { kind: "tooLarge" };
  if (status === 400 || status === 422) return { kind: "refused", code: status, reason, faults: [] };
  const after = retryAfterMs(headers["retry-after"], nowMs);
  const waitMs = Math.max(1_000, after ?? 0);
  if (status === 429) return { kind: "throttled", retryAfterMs: waitMs };
  if (after !== undefined && (status >= 500 || status === 408 || status === 425))
    return { kind: "throttled", retryAfterMs: waitMs, isServerError: status >= 500 };
  return status < 500 ? unavailable(reason) : { ...unavailable(reason, failing), isServerError: true };
}

function excerpt(text: string): string {
  const line = text.replace(/[^\x20-\x7e]+/g, " ").trim();
  return line === "" ? "" : `: ${line.slice(0, 200)}`;
}

const failing = "the service, or a proxy before it, fails; ask its operator if it goes on";

function unavailable(message: string, hint?: string): Extract<CallOutcome, { readonly kind: "unavailable" }> {
  const cause = new AgentError("SERVICE_UNREACHABLE", message, hint === undefined ? {} : { hint });
  return { kind: "unavailable", cause, answered: false };
}

const mostRetryAfterMs = 3_600_000;

/** The service's time of an answer, in milliseconds. The clock here may be wrong. */
function timeOf({ date }: HttpAnswer["headers"]): number | undefined {
  const at = typeof date === "string" ? httpDate(date) : Number.NaN;
  return Number.isNaN(at) ? undefined : at;
}

/** All forms of an HTTP date are in GMT, but that of asctime ends with the year and omits it (RFC 9110, 5.6.7). */
function httpDate(text: string): number {
  return Date.parse(/ \d{4}$/.test(text) ? `${text} GMT` : text);
}

/** Milliseconds to wait, from 0 to an hour. Undefined: no header, or an invalid one. */
function retryAfterMs(header: string | string[] | undefined, nowMs: number): number | undefined {
  const text = (Array.isArray(header) ? header[0] : header)?.trim();
  if (text === undefined || text === "") return undefined;
  if (/^\d+$/.test(text)) return Math.min(mostRetryAfterMs, Number(text) * 1_000);
  // `Date.parse` accepts "-1". A valid HTTP date starts with the name of the day.
  const at = /^[A-Z][a-z]{2}/.test(text) ? httpDate(text) : Number.NaN;
  return Number.isNaN(at) ? undefined : Math.min(mostRetryAfterMs, Math.max(0, at - nowMs));
}
