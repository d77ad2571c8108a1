// Calls of the service that give a result or fail: for what reads and publishes, not for points, which have `Outcome`.
import type { z } from "zod";
import { AgentError } from "../../core/errors.ts";
import type { Runtime } from "../../core/runtime.ts";
import { type Method, requestLimits, wireName } from "../../wire/method.ts";
import { readingVersion } from "./dialect.ts";
import type { ServiceOptions } from "./options.ts";
import { Pacer } from "./pacer.ts";
import type { RpcClient } from "./rpc-client.ts";
import { failureOf } from "./service-failure.ts";
import type { TurnFolder } from "./turns.ts";

export interface MethodCallerParts {
  readonly options: ServiceOptions;
  /** Stays the caller's. */
  readonly client: Pick<RpcClient, "call">;
  /** Answers longer than this are not read. */
  readonly maxAnswerBytes: number;
  /** Where other processes call too. Stays the caller's. */
  readonly turns?: Pick<TurnFolder, "of"> | undefined;
}

/** How often the service may ask for patience before that is its answer. */
const patience = 5;

/** Within the permitted rate of each method. One at a time for each method. */
export class MethodCaller {
  readonly #parts: MethodCallerParts;
  readonly #runtime: Runtime;
  readonly #pacers = new Map<Method, Pacer>();
  #id = 0;

  constructor(parts: MethodCallerParts, runtime: Runtime) {
    this.#parts = parts;
    this.#runtime = runtime;
  }

  /** The version that is spoken. */
  get version() {
    return readingVersion(this.#parts.options.apiVersion);
  }

  get integration(): string {
    return this.#parts.options.integration;
  }

  /** The whole request as it goes out, to see how large it is. */
  body(method: Method, params: object): Uint8Array {
    const name = wireName(method, this.#parts.options.namespace);
    return Buffer.from(JSON.stringify({ jsonrpc: "2.0", method: name, id: ++this.#id, params }), "utf8");
  }

  /** Bytes that a request to `method` may have. */
  maxBytes(method: Method): number {
    const { limits, apiVersion } = this.#parts.options;
    const { maxRequestBytes } = requestLimits(method, apiVersion);
    return Math.min(limits.maxRequest ?? maxRequestBytes, maxRequestBytes);
  }

  /** Resolves with the result. Rejects with `SERVICE_UNREACHABLE`, `SERVICE_REFUSED`, `SERVICE_PROTOCOL` or `signal.reason`. */
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
      const verdict = await this.#pacerOf(method).run(() => client.call(call, signal), signal);
      if (verdict.kind === "throttled" && left > 0) {
        await this.#runtime.clock.sleep(verdict.retryAfterMs, signal);
        continue;
      }
      if (verdict.kind !== "done") throw failureOf(`${url}: ${method}`, verdict);
      const parsed = result.safeParse(verdict.result);
      if (parsed.success) return parsed.data;
      throw new AgentError("SERVICE_PROTOCOL", `${url}: the answer to ${method} is none of ${this.version}`);
    }
  }

  #pacerOf(method: Method): Pacer {
    const known = this.#pacers.get(method);
    if (known) return known;
    const { options, turns } = this.#parts;
    const { requestsPerSecond } = requestLimits(method, this.version);
    // What is set is a share of what the service allows those who write.
    const share = isWriting(method) ? options.limits.requestsPerSecond : 1;
    const pacer = new Pacer(this.#runtime.clock, requestsPerSecond * share, turns?.of(method));
    this.#pacers.set(method, pacer);
    return pacer;
  }
}

function isWriting(method: Method): boolean {
  return method === "integration.saveSignals" || method === "admin.publishSignals";
}
