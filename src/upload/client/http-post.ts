// HTTP POST to one URL over persistent connections, and whether its service accepts connections at all.

import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { connect, type LookupFunction } from "node:net";
import type { Dispatcher } from "undici";
import { AgentError, reasonOf } from "../../core/errors.ts";
import type { EpochMicros } from "../../core/point.ts";
import type { Clock } from "../../core/runtime.ts";
import type { Secret } from "../../core/secret.ts";
import type { RequestTurn } from "../../core/sink.ts";
import { fileProblem } from "../../lib/files/paths.ts";
import { deadline, isAbort, orAbort } from "../../lib/flow/abort.ts";
import { Addresses, type ConnectionOptions, type Connections, openConnections, type Resolve } from "./connections.ts";

export interface HttpAnswer {
  readonly status: number;
  /** Whether the status is one of success, 200 to 299. */
  readonly ok: boolean;
  /** Keys in lower case. */
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: Buffer;
  /** The body in UTF-8 without byte order mark, decoded on each access. */
  readonly text: string;
}

export interface HttpPostOptions extends Pick<ConnectionOptions, "proxy" | "connections" | "traffic"> {
  readonly url: string;
  readonly caFile?: string | undefined;
  /** Name resolution. Undefined: that of the system. */
  readonly resolve?: Resolve | undefined;
}

/** The turn of the request ended before its first byte was written. */
export class NotSentError extends Error {}

/** Time for the service in addition to that for the body. The service may queue a request for 15 s. */
const patienceMs = 30_000;
/** Slowest uplink for which a request is awaited, in bytes per millisecond: 16 kB/s. */
const slowestBytesPerMs = 16;
/** undici reports a missing proxy password as an error with this text. */
const proxyRefusal = /\(407\)/;

export type HttpPost = Awaited<ReturnType<typeof openHttpPost>>;

/** Does not connect yet. Rejects with `SERVICE_UNREACHABLE` if `caFile` is unreadable. */
export async function openHttpPost(options: HttpPostOptions, clock: Clock) {
  const { caFile, proxy, connections, traffic } = options;
  let ca = await authoritiesIn(caFile).catch((cause: unknown) => {
    throw new AgentError("SERVICE_UNREACHABLE", `service.caFile ${caFile} cannot be read: ${fileProblem(cause)}`, {
      cause,
      hint: "correct service.caFile, or let the user of the agent read the file",
    });
  });
  const target = new URL(options.url);
  const peer = peerOf(options.url, proxy);
  const addresses = new Addresses(peer.host, clock, options.resolve);
  const { lookup } = addresses;
  let current = connectAll();

  function connectAll(): Connections {
    return openConnections({ origin: target.origin, proxy, ca, connections, lookup, traffic });
  }

  /** Closes idle connections now, and others after their request. */
  function reconnect(): void {
    current.dispatcher.close().catch(() => {});
    current = connectAll();
  }

  return {
    /**
     * Resolves with any status. Does not follow redirects, decompress bodies, or send a request twice. Rejects with
     * `SERVICE_UNREACHABLE` if no complete answer of at most `maxAnswerBytes` arrives in time, with `SERVICE_UNTRUSTED`,
     * with a `NotSentError`, or with `signal.reason`. `body` must not change before it settles.
     */
    async post(
      body: Uint8Array,
      headers: Record<string, string>,
      maxAnswerBytes: number,
      signal: AbortSignal,
      turn?: RequestTurn,
    ): Promise<HttpAnswer> {
      const withinMs = Math.round(patienceMs + body.length / slowestBytesPerMs);
      using limit = deadline(
        withinMs,
        signal,
        () => new AgentError("SERVICE_UNREACHABLE", `no answer within ${Math.round(withinMs / 1_000)} s`),
      );
      addresses.refresh();
      if ([...current.sockets].some(({ remoteAddress }) => !addresses.leadTo(remoteAddress))) reconnect();
      const { origin, pathname, search } = target;
      try {
        const request = { origin, path: pathname + search, method: "POST", headers, body };
        const answer = exchange(current.dispatcher, request, maxAnswerBytes, limit.signal, turn);
        const answered = await orAbort(answer, limit.signal);
        // Connections that the service closes afterwards have no counts any more.
        traffic?.read();
        return answered;
      } catch (error) {
        if (isAbort(error, signal)) throw signal.reason;
        if (error instanceof NotSentError) throw error;
        // The cause may affect the other connections too, so the next request resolves the name and reads `caFile` again.
        // While `caFile` is being replaced, it may be unreadable; then the old content stays in use.
        ca = await authoritiesIn(caFile).catch(() => ca);
        reconnect();
        if (limit.signal.aborted) throw limit.signal.reason;
        if (error instanceof AgentError) throw error;
        const message = reasonOf(error);
        if (proxyRefusal.test(message)) return answerOf(407, {}, Buffer.from(message));
        const reason = untrusted(error, clock.now());
        if (reason !== undefined)
          throw new AgentError("SERVICE_UNTRUSTED", `${origin} is not trusted: ${reason}`, { cause: error });
        throw new AgentError("SERVICE_UNREACHABLE", `${origin} cannot be reached: ${message}`, { cause: error });
      }
    },
    /** Whether service or proxy accept a TCP connection within 1 s. Rejects with `signal.reason` only. */
    connects: (signal: AbortSignal) => acceptsConnections(peer, signal, lookup),
    /** Aborts requests in flight. */
    [Symbol.asyncDispose]: () => current.dispatcher.destroy(),
  };
}

function exchange(
  dispatcher: Dispatcher,
  request: Dispatcher.DispatchOptions,
  maxAnswerBytes: number,
  signal: AbortSignal,
  turn: RequestTurn | undefined,
): Promise<HttpAnswer> {
  return new Promise((resolve, reject) => {
    const chunks: Uint8Array[] = [];
    let bytes = 0;
    let answer: Pick<HttpAnswer, "status" | "headers"> | undefined;
    dispatcher.dispatch(request, {
      onRequestStart(controller) {
        const abort = () => controller.abort(signal.reason);
        if (signal.aborted) abort();
        // Thrown: `controller.abort` would close the connection, and where connecting takes longer than a turn, no request
        // would ever start.
        else if (turn?.start() === false) throw new NotSentError("its turn was over before it was sent");
        else signal.addEventListener("abort", abort);
      },
      onResponseStart(_controller, status, headers) {
        answer = { status, headers };
      },
      onResponseData(controller, chunk) {
        chunks.push(chunk);
        bytes += chunk.length;
        if (bytes > maxAnswerBytes)
          controller.abort(new AgentError("SERVICE_PROTOCOL", `the answer is larger than ${maxAnswerBytes} bytes`));
      },
      onResponseEnd() {
        if (answer) resolve(answerOf(answer.status, answer.headers, Buffer.concat(chunks)));
      },
      onResponseError(_controller, error) {
        reject(error);
      },
    });
  });
}

const decoder = new TextDecoder();

function answerOf(status: number, headers: HttpAnswer["headers"], body: Buffer): HttpAnswer {
  return {
    status,
    ok: status >= 200 && status < 300,
    headers,
    body,
    get text() {
      return decoder.decode(body);
    },
  };
}

async function authoritiesIn(caFile: string | undefined): Promise<string | undefined> {
  return caFile === undefined ? undefined : await readFile(caFile, "utf8");
}

const unknownAuthority = "its certificate is of an authority that is not trusted; name that in service.caFile";

/** Node's code → reason why TLS failed, with the remedy. */
const reasons: Readonly<Record<string, string>> = {
  ERR_TLS_CERT_ALTNAME_INVALID:
    "its certificate is for another name: is service.url right, or does something answer in its place?",
  DEPTH_ZERO_SELF_SIGNED_CERT: "its certificate is self-signed; name it in service.caFile",
  SELF_SIGNED_CERT_IN_CHAIN: unknownAuthority,
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: unknownAuthority,
  UNABLE_TO_GET_ISSUER_CERT: unknownAuthority,
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: unknownAuthority,
  /** The authority has a trusted name, but another key. */
  CERT_SIGNATURE_FAILURE: unknownAuthority,
};
/** Further codes for certificates. */
const aboutCertificates = /^CERT_|_CERT$|^INVALID_(CA|PURPOSE)$/;

/** Undefined: the error does not concern trust. `now`: time of the local clock. */
function untrusted(error: unknown, now: EpochMicros): string | undefined {
  if (!(error instanceof Error) || !("code" in error) || typeof error.code !== "string") return undefined;
  const date = () => new Date(now / 1_000).toISOString().slice(0, 19);
  switch (error.code) {
    case "CERT_HAS_EXPIRED":
      return `its certificate has expired: it must be renewed there, unless the clock here is wrong, which says ${date()}Z`;
    case "CERT_NOT_YET_VALID":
      return `its certificate is not valid yet: is the clock here right? It says ${date()}Z`;
    default: {
      const reason =
        reasons[error.code] ?? (aboutCertificates.test(error.code) ? "its certificate is invalid" : undefined);
      return reason && `${reason} (${reasonOf(error)})`;
    }
  }
}

/** Slower connections are left to the requests. */
const probeWithinMs = 1_000;

interface PeerAddress {
  readonly host: string;
  readonly port: number;
}

/** Where connections for requests to `url` go: to the proxy if there is one. */
export function peerOf(url: string, proxy?: Secret): PeerAddress {
  const { protocol, hostname, port } = new URL(proxy?.reveal() ?? url);
  return { host: hostname.replace(/^\[|\]$/g, ""), port: Number(port) || (protocol === "https:" ? 443 : 80) };
}

/** Whether the peer accepts a TCP connection within 1 s. Rejects with `signal.reason` only. */
export async function acceptsConnections(
  peer: PeerAddress,
  signal: AbortSignal,
  lookup?: LookupFunction,
): Promise<boolean> {
  using limit = deadline(probeWithinMs, signal, () => new Error("no connection in time"));
  const socket = connect({ ...peer, ...(lookup && { lookup }) });
  try {
    await once(socket, "connect", { signal: limit.signal });
    return true;
  } catch {
    signal.throwIfAborted();
    return false;
  } finally {
    // Ignores later errors of the closed connection.
    socket.on("error", () => {}).destroy();
  }
}
