// Calls to the service as any reader would make them: JSON-RPC over HTTP with basic authentication. None of the
// agent's own client is in it, so that the comparison does not trust what it checks.
import type { z } from "zod";
import { AgentError } from "../core/errors.ts";
import type { Clock } from "../core/runtime.ts";
import { rpcResponse } from "../wire/json-rpc.ts";
import { type ApiVersion, type Method, versionHeader, wireName } from "../wire/method.ts";

/** The service to read from, and as whom. */
export interface ReaderOptions {
  /** `{base_url}` of the specification; requests go to `{url}/rpc`. */
  readonly url: string;
  readonly integration: string;
  /** For basic authentication; the user name is the Integration ID. */
  readonly password: string;
  readonly apiVersion: ApiVersion;
  /** Prefix of the platform methods. */
  readonly namespace: string;
}

/** What reading may ask of each method: 10 requests/s. */
const spacingMs = 100;
const timeoutMs = 60_000;

/** One call after the other, spaced so that no method is called more often than the service permits. */
export class RpcReader {
  readonly #options: ReaderOptions;
  readonly #clock: Clock;
  readonly #address: string;
  #id = 0;
  #next = 0;

  constructor(options: ReaderOptions, clock: Clock) {
    this.#options = options;
    this.#clock = clock;
    this.#address = `${options.url.replace(/\/$/, "")}/rpc`;
  }

  get integration(): string {
    return this.#options.integration;
  }

  /**
   * Resolves with the parsed result. Rejects with `SERVICE_UNREACHABLE`, `SERVICE_REFUSED` (credentials) or
   * `SERVICE_PROTOCOL` (an error, or an answer of another shape), or with `signal.reason`. Never tries again.
   */
  async call<Result extends z.ZodType>(
    method: Method,
    params: object,
    result: Result,
    signal: AbortSignal,
  ): Promise<z.output<Result>> {
    const wait = this.#next - this.#clock.monotonic();
    if (wait > 0) await this.#clock.sleep(wait, signal);
    this.#next = this.#clock.monotonic() + spacingMs;
    const { integration, password, apiVersion, namespace } = this.#options;
    const name = wireName(method, namespace);
    const { status, body } = await this.#post(
      JSON.stringify({ jsonrpc: "2.0", method: name, id: ++this.#id, params }),
      {
        "content-type": "application/json",
        authorization: `Basic ${Buffer.from(`${integration}:${password}`).toString("base64")}`,
        [versionHeader]: apiVersion,
      },
      signal,
    );
    if (status === 401 || status === 403)
      throw new AgentError("SERVICE_REFUSED", `${name}: the service answered HTTP ${status}`);
    if (status !== 200)
      throw new AgentError("SERVICE_PROTOCOL", `${name}: the service answered HTTP ${status}: ${body.slice(0, 200)}`);
    const response = rpcResponse.parse(JSON.parse(body));
    if ("error" in response && response.error) {
      const { code, message, data } = response.error;
      throw new AgentError("SERVICE_PROTOCOL", `${name}: ${code} ${message} ${JSON.stringify(data?.params ?? {})}`);
    }
    if (!("result" in response)) throw new AgentError("SERVICE_PROTOCOL", `${name}: neither result nor error`);
    return result.parse(response.result);
  }

  async #post(body: string, headers: Record<string, string>, signal: AbortSignal) {
    try {
      const limit = AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]);
      const response = await fetch(this.#address, { method: "POST", headers, body, redirect: "manual", signal: limit });
      return { status: response.status, body: await response.text() };
    } catch (error) {
      signal.throwIfAborted();
      throw new AgentError("SERVICE_UNREACHABLE", `${this.#options.url}: ${String(error)}`, { cause: error });
    }
  }
}
