// Service calls that return a result or throw, for reading and publishing. Points use `Outcome` instead.
import type { z } from "zod";
import { AgentError, type ErrorCode, isAgentError, unreachable } from "../../core/errors.ts";
import type { Runtime } from "../../core/runtime.ts";
import type { RequestGate } from "../../core/sink.ts";
import { type ApiVersion, type Method, requestLimits, wireName } from "../../wire/method.ts";
import type { ItemSaveView, SignalSaveView } from "../../wire/signal-view.ts";
import type { ServiceOptions } from "./options.ts";
import { Pacer, type TurnFolder } from "./pacer.ts";
import type { CallOutcome, RpcClient } from "./rpc-client.ts";

export interface MethodCallerParts {
  readonly options: ServiceOptions;
  /** The caller disposes it. */
  readonly client: Pick<RpcClient, "call">;
  /** Longer answers are rejected. */
  readonly maxAnswerBytes: number;
  /** Set if other processes call too. The caller disposes it. */
  readonly turns?: Pick<TurnFolder, "of"> | undefined;
  /** Set if other agents call too. */
  readonly gateOf?: ((method: Method) => RequestGate | undefined) | undefined;
}

/** Retries of a throttled call before it fails. */
const patience = 5;

/** Observes the permitted rate of each method, with one call at a time per method. */
export class MethodCaller {
  readonly #parts: MethodCallerParts;
  readonly #runtime: Runtime;
  readonly #pacers = new Map<Method, Pacer>();
  #id = 0;

  constructor(parts: MethodCallerParts, runtime: Runtime) {
    this.#parts = parts;
    this.#runtime = runtime;
  }

  get version() {
    return readingVersion(this.#parts.options.apiVersion);
  }

  get integration(): string {
    return this.#parts.options.integration;
  }

  /** The encoded request, for measuring its size. */
  body(method: Method, params: object): Uint8Array {
    const name = wireName(method, this.#parts.options.namespace);
    return Buffer.from(JSON.stringify({ jsonrpc: "2.0", method: name, id: ++this.#id, params }), "utf8");
  }

  /** Largest request to `method`, in bytes. */
  maxBytes(method: Method): number {
    const { limits, apiVersion } = this.#parts.options;
    const { maxRequestBytes } = requestLimits(method, apiVersion);
    return Math.min(limits.maxRequest ?? maxRequestBytes, maxRequestBytes);
  }

  /** Resolves with the result. Rejects with `SERVICE_UNREACHABLE`, `_REFUSED`, `_PROTOCOL` or `signal.reason`. */
  async call<Result extends z.ZodType>(
    method: Method,
    params: object,
    result: Result,
    signal: AbortSignal,
  ): Promise<z.output<Result>> {
    const { options, client, maxAnswerBytes } = this.#parts;
    const { url } = options;
    const body = this.body(method, params);
    const call = { id: this.#id, body, maxAnswerBytes, apiVersion: this.version };
    for (let left = patience; ; left--) {
      const verdict = await this.#pacerOf(method).run((turn) => client.call({ ...call, turn }, signal), signal);
      if (verdict.kind === "throttled" && left > 0) {
        await this.#runtime.clock.sleep(verdict.retryAfterMs, signal);
        continue;
      }
      if (verdict.kind !== "done") throw serviceFailure(`${url}: ${method}`, verdict);
      const parsed = result.safeParse(verdict.result);
      if (parsed.success) return parsed.data;
      throw new AgentError("SERVICE_PROTOCOL", `${url}: the answer to ${method} is none of ${this.version}`);
    }
  }

  #pacerOf(method: Method): Pacer {
    const known = this.#pacers.get(method);
    if (known) return known;
    const { options, turns, gateOf } = this.#parts;
    const { requestsPerSecond } = requestLimits(method, this.version);
    // The configured limit is a share of the service's limit for writing methods.
    const isWriting = method === "integration.saveSignals" || method === "admin.publishSignals";
    const share = isWriting ? options.limits.requestsPerSecond : 1;
    const pacer = new Pacer(this.#runtime.clock, requestsPerSecond * share, turns?.of(method), gateOf?.(method));
    this.#pacers.set(method, pacer);
    return pacer;
  }
}

/** The service refused the content of the request. A smaller or different one may succeed. */
class RefusedRequest extends Error {}

/** The request was too long for the service or a proxy before it, or was cut off. A shorter one may succeed. */
class TooLongRequest extends RefusedRequest {}

export function isTooLong(error: unknown): boolean {
  return isAgentError(error) && error.cause instanceof TooLongRequest;
}

export function isRefusal(error: unknown): error is AgentError {
  return isAgentError(error, "SERVICE_PROTOCOL") && error.cause instanceof RefusedRequest;
}

const tooLarge = "HTTP 413, the service takes no request so large";

/** Converts an unsuccessful answer to the error of a command. `what`: the request and its destination. */
export function serviceFailure(what: string, verdict: Exclude<CallOutcome, { kind: "done" }>): AgentError {
  const failure = (code: ErrorCode, text: string, cause?: Error, hint?: string) =>
    new AgentError(code, `${what}: ${text}`, { ...(cause && { cause }), ...(hint !== undefined && { hint }) });
  switch (verdict.kind) {
    case "throttled":
      return failure("SERVICE_UNREACHABLE", "the service asks to wait");
    case "unauthorized":
      return failure("SERVICE_REFUSED", verdict.reason, undefined, verdict.hint);
    case "unavailable": {
      const { answered, cause, isServerError, isCut } = verdict;
      if (isAgentError(cause, "SERVICE_UNTRUSTED")) return cause;
      // A service with an invalid answer is reachable.
      const isReached = answered || isAgentError(cause, "SERVICE_PROTOCOL");
      const hint = isServerError && isAgentError(cause) ? cause.hint : undefined;
      return failure(
        isReached ? "SERVICE_PROTOCOL" : "SERVICE_UNREACHABLE",
        cause.message,
        isCut ? new TooLongRequest(cause.message, { cause }) : cause,
        hint,
      );
    }
    case "refused":
      return failure("SERVICE_PROTOCOL", verdict.reason, new RefusedRequest(verdict.reason));
    case "partly":
      return failure("SERVICE_PROTOCOL", verdict.error.message);
    case "tooLarge":
      return failure("SERVICE_PROTOCOL", tooLarge, new TooLongRequest(tooLarge));
    default:
      return unreachable(verdict);
  }
}

/** Version for reading signals, items and data. 1.0 has no such methods; 1.1beta1 adds them in the same dialect. */
function readingVersion(version: ApiVersion): Exclude<ApiVersion, "1.0"> {
  return version === "1.0" ? "1.1beta1" : version;
}

/** A save view in the dialect of `version`: 1.1 names `type` `valueType`. */
export function saveViewIn(version: ApiVersion, view: SignalSaveView | ItemSaveView): object {
  if (version !== "1.1") return view;
  const { type, ...others } = view;
  return { ...others, valueType: type };
}

/** Name of the member of `integration.saveSignals` with the views. */
export function inputsMember(version: ApiVersion): "inputs" | "signalsByInput" {
  return version === "1.1" ? "signalsByInput" : "inputs";
}
