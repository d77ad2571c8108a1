// Calls of the service for commands that read from it: in the specification's dialect, within the permitted rate.
import { join } from "node:path";
import type { z } from "zod";
import type { Config } from "../config/config.ts";
import { AgentError } from "../core/errors.ts";
import type { Runtime } from "../core/runtime.ts";
import { openCredentials } from "../upload/open-credentials.ts";
import { Pacer } from "../upload/pacer.ts";
import { RpcClient } from "../upload/rpc-client.ts";
import type { ApiVersion } from "../wire/api-version.ts";
import { requestLimits } from "../wire/limits.ts";
import { type Method, wireName } from "../wire/method.ts";
import { failureOf } from "./service-failure.ts";

/** The version that the methods to read with are specified for. */
const dialect: ApiVersion = "1.1beta1";
/** As many points as a command can hold. */
const maxAnswerBytes = 256 * 2 ** 20;
/** How often the service may ask for patience before that is its answer. */
const patience = 5;

export class ServiceCaller implements AsyncDisposable {
  readonly #client: RpcClient;
  readonly #config: Config["service"];
  readonly #runtime: Runtime;
  readonly #pacers = new Map<Method, Pacer>();
  readonly #owned: AsyncDisposable;
  #id = 0;

  private constructor(client: RpcClient, config: Config["service"], runtime: Runtime, owned: AsyncDisposable) {
    this.#client = client;
    this.#config = config;
    this.#runtime = runtime;
    this.#owned = owned;
  }

  /** Connects to nothing yet. */
  static async open({ service, agent }: Config, version: string, runtime: Runtime): Promise<ServiceCaller> {
    await using opened = new AsyncDisposableStack();
    const token = join(agent.dataDir, "upload", "token.json");
    const credentials = opened.use(await openCredentials(service, token, runtime));
    const options = { ...service, apiVersion: dialect };
    const name = `tagferry/${version} (${agent.name})`;
    const client = opened.use(await RpcClient.open({ options, credentials, agent: name }, runtime));
    return new ServiceCaller(client, service, runtime, opened.move());
  }

  /** Resolves with the result. Rejects with `SERVICE_UNREACHABLE`, `SERVICE_REFUSED`, `SERVICE_PROTOCOL` or `signal.reason`. */
  async call<Result extends z.ZodType>(
    method: Method,
    params: object,
    result: Result,
    signal: AbortSignal,
  ): Promise<z.output<Result>> {
    const { url, namespace } = this.#config;
    const { clock } = this.#runtime;
    const pacer = this.#pacers.get(method) ?? new Pacer(clock, requestLimits(method, dialect).requestsPerSecond);
    this.#pacers.set(method, pacer);
    const id = ++this.#id;
    const body = Buffer.from(JSON.stringify({ jsonrpc: "2.0", method: wireName(method, namespace), id, params }));
    for (let left = patience; ; left--) {
      const verdict = await pacer.run(() => this.#client.call({ id, body, maxAnswerBytes }, signal), signal);
      if (verdict.kind === "throttled" && left > 0) {
        await clock.sleep(verdict.retryAfterMs, signal);
        continue;
      }
      if (verdict.kind !== "done") throw failureOf(`${url}: ${method}`, verdict);
      const parsed = result.safeParse(verdict.result);
      if (parsed.success) return parsed.data;
      throw new AgentError("SERVICE_PROTOCOL", `${url}: the answer to ${method} is none of ${dialect}`);
    }
  }

  [Symbol.asyncDispose](): PromiseLike<void> {
    return this.#owned[Symbol.asyncDispose]();
  }
}
