// One address that is posted to over connections that stay open.
//
// On Node's own client rather than undici: the two need the same time for 9 MiB, and this one 10 MB less of memory.

import { readFile } from "node:fs/promises";
import type { Agent, ClientRequest, IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { AgentError } from "../../core/errors.ts";
import type { Clock } from "../../core/runtime.ts";
import type { Secret } from "../../core/secret.ts";
import { deadline, isAbort } from "../../lib/abort.ts";
import { http, https } from "../../lib/http.ts";
import { Addresses, type Resolve } from "./addresses.ts";
import { untrusted } from "./untrusted.ts";

export interface HttpAnswer {
  readonly status: number;
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly text: string;
}

export interface HttpPostOptions {
  /** Where requests go, path included. */
  readonly url: string;
  /** Its address; may hold a name and a password. */
  readonly proxy?: Secret | undefined;
  readonly caFile?: string | undefined;
  /** Connections that may be open at once. */
  readonly connections: number;
  /** Undefined: names lead where the system says. */
  readonly resolve?: Resolve | undefined;
}

/** How long the service may take beside the time that the body needs: it may queue a request for 15 s. */
const patienceMs = 30_000;
/** How long a connection may take, TLS included. */
const connectWithinMs = 20_000;
/** How long nothing more of a body may go out. Node looks only so often, so that it takes up to twice that. */
const stalledAfterMs = 20_000;
/** The slowest uplink that a whole request is waited for, in bytes a millisecond: 16 kB/s. */
const slowestBytesPerMs = 16;

export class HttpPost implements AsyncDisposable {
  readonly #agent: Agent;
  readonly #url: URL;
  readonly #addresses: Addresses;
  readonly #caFile: string | undefined;
  readonly #clock: Clock;

  private constructor(agent: Agent, url: URL, addresses: Addresses, caFile: string | undefined, clock: Clock) {
    this.#agent = agent;
    this.#url = url;
    this.#addresses = addresses;
    this.#caFile = caFile;
    this.#clock = clock;
  }

  /** Connects to nothing yet. Rejects with `SERVICE_UNREACHABLE` when `caFile` cannot be read. */
  static async open({ url, proxy, caFile, connections, resolve }: HttpPostOptions, clock: Clock): Promise<HttpPost> {
    const target = new URL(url);
    const ca = caFile === undefined ? undefined : await readAuthorities(caFile);
    const { hostname } = proxy ? new URL(proxy.reveal()) : target;
    const addresses = new Addresses(hostname.replace(/^\[|\]$/g, ""), clock, resolve);
    // The agent closes idle connections a second before the server does where the server says when.
    const options = {
      keepAlive: true,
      maxSockets: connections,
      lookup: addresses.lookup,
      ...(proxy && { proxyEnv: { HTTP_PROXY: proxy.reveal(), HTTPS_PROXY: proxy.reveal() } }),
    };
    const agent =
      target.protocol === "https:"
        ? // Said, as an environment variable of Node would switch it off otherwise.
          new https.Agent({ ...options, rejectUnauthorized: true, ...(ca !== undefined && { ca }) })
        : new http.Agent(options);
    const keep = agent.keepSocketAlive.bind(agent);
    // Node closes the connection when this says false.
    agent.keepSocketAlive = (socket) => addresses.leadTo(addressOf(socket)) && keep(socket);
    return new HttpPost(agent, target, addresses, caFile, clock);
  }

  /**
   * Resolves with whatever status came; redirects are not followed, bodies not decompressed. Rejects with
   * `SERVICE_UNREACHABLE` when no whole answer of at most `maxAnswerBytes` came in time, with `SERVICE_UNTRUSTED`, or
   * with `signal.reason`. `body` must not be changed before it settles.
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
    this.#addresses.refresh();
    try {
      return await this.#exchange(body, headers, maxAnswerBytes, limit.signal);
    } catch (error) {
      if (isAbort(error, signal)) throw signal.reason;
      // What happened to one may be so with the others that are open: the next try begins with the name.
      for (const sockets of Object.values(this.#agent.freeSockets))
        for (const socket of sockets ?? []) socket.destroy();
      if (limit.signal.aborted) throw limit.signal.reason;
      if (error instanceof AgentError) throw error;
      const reason = untrusted(error, this.#clock.now());
      if (reason !== undefined) {
        await this.#renewAuthorities();
        throw new AgentError("SERVICE_UNTRUSTED", `${this.#url.origin} is not trusted: ${reason}`, { cause: error });
      }
      throw new AgentError("SERVICE_UNREACHABLE", `${this.#url.origin} cannot be reached: ${messageOf(error)}`, {
        cause: error,
      });
    }
  }

  /** Requests that are under way are broken off. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#agent.destroy();
  }

  /** The next try is with what stands in `caFile` then. */
  async #renewAuthorities(): Promise<void> {
    if (this.#caFile === undefined || !(this.#agent instanceof https.Agent)) return;
    try {
      this.#agent.options.ca = await readAuthorities(this.#caFile);
    } catch {
      // About to be replaced, say.
    }
  }

  #exchange(
    body: Uint8Array,
    headers: Record<string, string>,
    maxAnswerBytes: number,
    signal: AbortSignal,
  ): Promise<HttpAnswer> {
    return new Promise((resolve, reject) => {
      const { request: begin } = this.#url.protocol === "https:" ? https : http;
      const request = begin(this.#url, {
        method: "POST",
        agent: this.#agent,
        headers: { ...headers, "content-length": body.length },
        signal,
      });
      limitConnecting(request);
      limitStalling(request);
      let answered = false;
      request.on("response", (response) => {
        // A service may refuse a request before it has read all of it: then its answer counts, not the broken pipe.
        answered = true;
        readText(response, maxAnswerBytes).then(
          (text) => resolve({ status: response.statusCode ?? 0, headers: response.headers, text }),
          (error: unknown) => {
            request.destroy();
            reject(error);
          },
        );
      });
      request.on("error", (error) => {
        if (!answered) reject(error);
      });
      request.end(body);
    });
  }
}

function limitConnecting(request: ClientRequest): void {
  request.once("socket", (socket) => {
    if (!socket.connecting) return;
    const timer = setTimeout(
      () => request.destroy(new Error(`no connection within ${connectWithinMs / 1_000} s`)),
      connectWithinMs,
    );
    const done = () => clearTimeout(timer);
    socket.once("encrypted" in socket ? "secureConnect" : "connect", done);
    request.once("close", done);
  });
}

/** What waits to be sent to a machine that is gone would wait for the whole time that a slow uplink may need. */
function limitStalling(request: ClientRequest): void {
  request.once("socket", (socket: Socket) => {
    const stalled = () =>
      request.destroy(new Error(`nothing more of the request was taken for ${stalledAfterMs / 1_000} s`));
    const done = () => {
      socket.off("timeout", stalled);
      socket.setTimeout(0);
    };
    // What the system has taken since it was looked at last counts.
    socket.setTimeout(stalledAfterMs, stalled);
    request.once("finish", done);
    request.once("close", done);
  });
}

function addressOf(socket: Duplex): string | undefined {
  return "remoteAddress" in socket && typeof socket.remoteAddress === "string" ? socket.remoteAddress : undefined;
}

async function readText(response: IncomingMessage, maxBytes: number): Promise<string> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of response as AsyncIterable<Uint8Array>) {
    bytes += chunk.length;
    if (bytes > maxBytes) throw new AgentError("SERVICE_PROTOCOL", `the answer is larger than ${maxBytes} bytes`);
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

/** Node reports some failures of connecting as an AggregateError without a message. */
function messageOf(error: unknown): string {
  if (error instanceof AggregateError && error.errors.length > 0) return error.errors.map(messageOf).join("; ");
  return error instanceof Error ? error.message || error.name : String(error);
}
