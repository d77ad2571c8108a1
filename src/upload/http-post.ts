// One address that is posted to over connections that stay open: the slice of undici that is used, and how.
import { readFile } from "node:fs/promises";
import request from "undici/lib/api/api-request.js";
import Pool from "undici/lib/dispatcher/pool.js";
import { AgentError } from "../core/errors.ts";
import { deadline, isAbort } from "../lib/abort.ts";

export interface HttpAnswer {
  readonly status: number;
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly text: string;
}

export interface HttpPostOptions {
  /** Where requests go, path included. */
  readonly url: string;
  readonly proxy?: string | undefined;
  readonly caFile?: string | undefined;
  /** Connections that may be open at once. */
  readonly connections: number;
}

/** How long the service may take beside the time that the body needs: it may queue a request for 15 s. */
const patienceMs = 30_000;
/** The slowest uplink that a whole request is waited for, in bytes a millisecond: 16 kB/s. */
const slowestBytesPerMs = 16;

export class HttpPost implements AsyncDisposable {
  readonly #dispatcher: UndiciDispatcher;
  readonly #origin: string;
  readonly #path: string;

  private constructor(dispatcher: UndiciDispatcher, url: URL) {
    this.#dispatcher = dispatcher;
    this.#origin = url.origin;
    this.#path = url.pathname + url.search;
  }

  /** Connects to nothing yet. Rejects with `SERVICE_UNREACHABLE` when `caFile` cannot be read. */
  static async open({ url, proxy, caFile, connections }: HttpPostOptions): Promise<HttpPost> {
    const target = new URL(url);
    const ca = caFile === undefined ? undefined : await readAuthorities(caFile);
    const tls = ca === undefined ? {} : { ca };
    const options = {
      connections,
      pipelining: 1,
      // Longer than the pause between two requests; undici closes before the server does where the server says when.
      keepAliveTimeout: 30_000,
      // Time-outs are counted here, over request and answer together and by the size of the body.
      headersTimeout: 0,
      bodyTimeout: 0,
      allowH2: false,
    };
    if (proxy === undefined)
      return new HttpPost(new Pool(target.origin, { ...options, connect: { timeout: 20_000, ...tls } }), target);
    const { default: ProxyAgent } = await import("undici/lib/dispatcher/proxy-agent.js");
    return new HttpPost(new ProxyAgent({ uri: proxy, ...options, requestTls: tls, proxyTls: tls }), target);
  }

  /**
   * Resolves with whatever status came; redirects are not followed, bodies not decompressed. Rejects with
   * `SERVICE_UNREACHABLE` when no whole answer of at most `maxAnswerBytes` came in time, or with `signal.reason`.
   * `body` must not be changed before it settles.
   */
  async post(
    body: Uint8Array,
    headers: Record<string, string>,
    maxAnswerBytes: number,
    signal: AbortSignal,
  ): Promise<HttpAnswer> {
    const withinMs = Math.round(patienceMs + body.length / slowestBytesPerMs);
    using limit = deadline(
      withinMs,
      signal,
      () => new AgentError("SERVICE_UNREACHABLE", `no answer within ${Math.round(withinMs / 1_000)} s`),
    );
    try {
      const answer = await request.call(this.#dispatcher, {
        origin: this.#origin,
        path: this.#path,
        method: "POST",
        headers,
        body,
        signal: limit.signal,
      });
      const text = await readText(answer.body, maxAnswerBytes);
      return { status: answer.statusCode, headers: answer.headers, text };
    } catch (error) {
      if (isAbort(error, signal)) throw signal.reason;
      if (error instanceof AgentError) throw error;
      throw new AgentError("SERVICE_UNREACHABLE", `${this.#origin} cannot be reached: ${messageOf(error)}`, {
        cause: error,
      });
    }
  }

  /** Requests that are under way are broken off. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#dispatcher.destroy();
  }
}

async function readText(body: AsyncIterable<Uint8Array> & { destroy(): void }, maxBytes: number): Promise<string> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of body) {
    bytes += chunk.length;
    if (bytes > maxBytes) {
      body.destroy();
      throw new AgentError("SERVICE_UNREACHABLE", `the answer is larger than ${maxBytes} bytes`);
    }
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
}

async function readAuthorities(path: string): Promise<string> {
  try {
    return await readFile(path, "utf8");
  } catch (error) {
    throw new AgentError("SERVICE_UNREACHABLE", `service.caFile ${path} cannot be read: ${messageOf(error)}`, {
      cause: error,
    });
  }
}

/** undici reports some failures of connecting as an AggregateError without a message. */
function messageOf(error: unknown): string {
  if (error instanceof AggregateError && error.errors.length > 0) return error.errors.map(messageOf).join("; ");
  return error instanceof Error ? error.message || error.name : String(error);
}
