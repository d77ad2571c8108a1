// Requests and answers of the HTTP layer: bodies in, and out everything that is not a JSON-RPC response.
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Readable } from "node:stream";
import { createGunzip } from "node:zlib";
import type { Clock } from "../../core/runtime.ts";
import { formatByteSize } from "../../lib/byte-size.ts";

/** Ends a request before it is a call. The body is the one that the token endpoint documents for its failures. */
export class HttpRefusal extends Error {
  override readonly name = "HttpRefusal";
  readonly status: number;
  /** A word for programs: `payload_too_large`. */
  readonly error: string;
  readonly headers: Readonly<Record<string, string>>;

  constructor(status: number, error: string, description: string, headers: Readonly<Record<string, string>> = {}) {
    super(description);
    this.status = status;
    this.error = error;
    this.headers = headers;
  }
}

/** Refuses a body of another content type. */
export function checkContentType(request: IncomingMessage, wanted: string): void {
  if ((request.headers["content-type"] ?? "").split(";")[0]?.trim().toLowerCase() !== wanted)
    throw new HttpRefusal(415, "unsupported_media_type", `the header content-type must be ${wanted}`);
}

/** Refuses a body that says beforehand that it is too large, or that is compressed in a way that is not understood. */
export function checkDeclaredBody(request: IncomingMessage, maxBytes: number): void {
  const coding = (request.headers["content-encoding"] ?? "identity").toLowerCase();
  if (coding !== "identity" && coding !== "gzip")
    throw new HttpRefusal(415, "unsupported_encoding", "content-encoding must be gzip, or absent");
  // What gzip cannot make smaller it makes longer by a thousandth at most.
  const mayHave = coding === "identity" ? maxBytes : maxBytes * 1.01;
  if (Number(request.headers["content-length"] ?? 0) > mayHave) throw tooLarge(maxBytes);
}

/** Tells a client that waits for it (`Expect: 100-continue`) to send its body. */
export function continueIfAsked(request: IncomingMessage, response: ServerResponse): void {
  if (request.headers.expect?.toLowerCase() === "100-continue") response.writeContinue();
}

/**
 * Resolves with the body, inflated if need be, in a buffer of its own that can be handed to another thread. `limitOf` is
 * asked with the beginning of the body as soon as there is one; it may lower the limit. Rejects with `HttpRefusal`, or with
 * an error when the client went away.
 */
export async function readBody(
  request: IncomingMessage,
  maxBytes: number,
  limitOf: (beginning: Buffer) => number = () => maxBytes,
): Promise<Buffer<ArrayBuffer>> {
  const compressed = request.headers["content-encoding"]?.toLowerCase() === "gzip";
  const source: Readable = compressed ? inflated(request) : request;
  const declared = compressed ? Number.NaN : Number(request.headers["content-length"]);
  // Not a list of chunks: each may be a byte, and takes a hundred as an object.
  const body = new ArrayBuffer(0, { maxByteLength: maxBytes });
  let limit = maxBytes;
  try {
    for await (const chunk of source as AsyncIterable<Buffer>) {
      const at = body.byteLength;
      if (at === 0) limit = Math.min(limit, limitOf(chunk));
      if (at + chunk.length > limit || declared > limit) throw tooLarge(limit);
      body.resize(at + chunk.length);
      new Uint8Array(body, at).set(chunk);
    }
  } catch (error) {
    if (compressed && error instanceof Error && "code" in error && String(error.code).startsWith("Z_"))
      throw new HttpRefusal(400, "bad_encoding", "the body is not what gzip makes");
    throw error;
  }
  return Buffer.from(body.transferToFixedLength());
}

function inflated(request: IncomingMessage): Readable {
  const gunzip = createGunzip();
  request.on("error", (error) => gunzip.destroy(error));
  request.on("aborted", () => gunzip.destroy(new Error("the client went away")));
  return request.pipe(gunzip);
}

export function tooLarge(maxBytes: number): HttpRefusal {
  return new HttpRefusal(413, "payload_too_large", `the request must be at most ${formatByteSize(maxBytes)} of JSON`);
}

/** Aborts when the connection of this answer is closed, at once where it is. */
export function goneSignal(response: ServerResponse): AbortSignal {
  const gone = new AbortController();
  const leave = () => gone.abort(new Error("the client went away"));
  if (response.closed) leave();
  else response.once("close", leave);
  return gone.signal;
}

/** Settles as `work` does, whose signal aborts with `gone`, or after `ms` with a refusal of status 504. */
export async function within<T>(
  ms: number,
  timeout: string,
  clock: Clock,
  gone: AbortSignal,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const late = new AbortController();
  const timer = new AbortController();
  clock.sleep(ms, timer.signal).then(
    () => late.abort(new HttpRefusal(504, "timeout", timeout)),
    () => {},
  );
  try {
    return await work(AbortSignal.any([gone, late.signal]));
  } finally {
    timer.abort();
  }
}

/** Sends `body` whole. Nothing happens when the client is gone. */
export function send(
  response: ServerResponse,
  status: number,
  headers: Readonly<Record<string, string>>,
  body: Uint8Array | string | undefined,
): void {
  if (response.headersSent || response.destroyed) return;
  response.writeHead(status, {
    "cache-control": "no-store",
    ...(status === 204 ? {} : { "content-length": String(body === undefined ? 0 : Buffer.byteLength(body)) }),
    ...headers,
  });
  response.end(body);
}

export function sendJson(
  response: ServerResponse,
  status: number,
  body: Uint8Array | string,
  headers: Readonly<Record<string, string>> = {},
): void {
  send(response, status, { "content-type": "application/json", ...headers }, body);
}

const lingerMs = 2_000;

/** Sends a refusal; what is left of the request's body is thrown away for a while, so that the client gets to read it. */
export function refuse(request: IncomingMessage, response: ServerResponse, refusal: HttpRefusal): void {
  const { status, error, message, headers } = refusal;
  const unread = !request.readableEnded && !request.complete;
  const body = JSON.stringify({ error, error_description: message });
  sendJson(response, status, body, { ...(unread ? { connection: "close" } : {}), ...headers });
  if (!unread) return;
  request.resume();
  const timer = setTimeout(() => request.destroy(), lingerMs);
  request.once("close", () => clearTimeout(timer));
}
