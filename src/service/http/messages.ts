// The HTTP layer: request bodies, refusals, and responses in a coding that the client accepts.
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Readable } from "node:stream";
import { promisify } from "node:util";
import { brotliCompress, constants, createGunzip, gzip, zstdCompress } from "node:zlib";
import { codeOf } from "../../core/errors.ts";
import type { Clock } from "../../core/runtime.ts";
import { deadline } from "../../lib/flow/abort.ts";
import { formatByteSize } from "../../lib/values/byte-size.ts";

/** Ends a request before it becomes a call. Its body has the error format of the token endpoint. */
export class HttpRefusal extends Error {
  override readonly name = "HttpRefusal";
  readonly status: number;
  /** Machine-readable code such as `payload_too_large`. */
  readonly error: string;
  readonly headers: Readonly<Record<string, string>>;

  constructor(status: number, error: string, description: string, headers: Readonly<Record<string, string>> = {}) {
    super(description);
    this.status = status;
    this.error = error;
    this.headers = headers;
  }
}

export function checkContentType(request: IncomingMessage, wanted: string): void {
  if ((request.headers["content-type"] ?? "").split(";")[0]?.trim().toLowerCase() !== wanted)
    throw new HttpRefusal(415, "unsupported_media_type", `the header content-type must be ${wanted}`);
}

/** Refuses a body whose declared length is too large or whose coding is unsupported. */
export function checkDeclaredBody(request: IncomingMessage, maxBytes: number): void {
  const coding = (request.headers["content-encoding"] ?? "identity").toLowerCase();
  if (coding !== "identity" && coding !== "gzip")
    throw new HttpRefusal(415, "unsupported_encoding", "content-encoding must be gzip, or absent");
  // gzip lengthens incompressible data by a thousandth at most.
  const mayHave = coding === "identity" ? maxBytes : maxBytes * 1.01;
  if (Number(request.headers["content-length"] ?? 0) > mayHave) throw tooLarge(maxBytes);
}

/** Asks a client that waits (`Expect: 100-continue`) to send its body. */
export function continueIfAsked(request: IncomingMessage, response: ServerResponse): void {
  if (request.headers.expect?.toLowerCase() === "100-continue") response.writeContinue();
}

/**
 * Resolves with the inflated body in a transferable buffer. `limitOf` may lower the limit, given the first chunk.
 * `hold` counts the bytes of each chunk, and may throw. Rejects with `HttpRefusal`, or if the client disconnects.
 */
export async function readBody(
  request: IncomingMessage,
  maxBytes: number,
  limitOf: (beginning: Buffer) => number = () => maxBytes,
  hold: (bytes: number) => void = () => {},
): Promise<Buffer<ArrayBuffer>> {
  const compressed = request.headers["content-encoding"]?.toLowerCase() === "gzip";
  const source: Readable = compressed ? inflated(request) : request;
  const declared = compressed ? Number.NaN : Number(request.headers["content-length"]);
  // Not a list of chunks: a one-byte chunk takes a hundred bytes as an object. A resizable buffer must be copied in the
  // end, which takes 5 ms of a full request. One of the declared length takes memory only as it is written.
  const whole = declared <= maxBytes;
  const body = whole ? new ArrayBuffer(declared) : new ArrayBuffer(0, { maxByteLength: maxBytes });
  let at = 0;
  let limit = maxBytes;
  try {
    for await (const chunk of source as AsyncIterable<Buffer>) {
      if (at === 0) limit = Math.min(limit, limitOf(chunk));
      if (at + chunk.length > limit || declared > limit) throw tooLarge(limit);
      hold(chunk.length);
      if (!whole) body.resize(at + chunk.length);
      new Uint8Array(body, at).set(chunk);
      at += chunk.length;
    }
  } catch (error) {
    if (compressed && String(codeOf(error)).startsWith("Z_"))
      throw new HttpRefusal(400, "bad_encoding", "the body is not what gzip makes");
    throw error;
  }
  return Buffer.from(whole ? body : body.transferToFixedLength());
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

/** Aborts when the connection of this response closes; immediately if it already has. */
export function goneSignal(response: ServerResponse): AbortSignal {
  const gone = new AbortController();
  const leave = () => gone.abort(new Error("the client went away"));
  if (response.closed) leave();
  else response.once("close", leave);
  return gone.signal;
}

/** Settles like `work`, whose signal aborts with `gone`. Rejects with a 504 refusal after `ms`. */
export async function within<T>(
  ms: number,
  timeout: string,
  clock: Clock,
  gone: AbortSignal,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  using limit = deadline(ms, gone, () => new HttpRefusal(504, "timeout", timeout), clock);
  return await work(limit.signal);
}

/** Sends `body` at once. Does nothing if the client has disconnected. */
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

/** Sends a refusal. Discards the rest of the request for a while, so that the client can read the response. */
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

/** For smaller bodies, compression saves less than its headers cost. */
const leastBytes = 1_024;
/** Compression time matters as well: brotli's default quality of 11 takes seconds for megabytes. */
const brotliOptions = { params: { [constants.BROTLI_PARAM_QUALITY]: 4 } };

/** In order of preference (RFC 9110, 12.5.3). They run on a thread of the pool. */
const coders: Readonly<Record<string, (body: Uint8Array) => Promise<Uint8Array>>> = {
  zstd: promisify(zstdCompress),
  br: (body) => promisify(brotliCompress)(body, brotliOptions),
  gzip: (body) => promisify(gzip)(body, { level: 5 }),
};

/** Sends `body` with status 200 in the best coding that `request` accepts. Resolves with the bytes of the body as sent. */
export async function sendCoded(
  request: IncomingMessage,
  response: ServerResponse,
  headers: Readonly<Record<string, string>>,
  body: Uint8Array,
): Promise<number> {
  const coding = body.length < leastBytes ? "" : chosenCoding(String(request.headers["accept-encoding"] ?? ""));
  const code = coders[coding];
  const coded = code ? await code(body) : body;
  send(response, 200, code ? { ...headers, "content-encoding": coding } : headers, coded);
  return coded.length;
}

/** The coding with the highest weight; empty if none is accepted. `*` stands for all codings not named. */
function chosenCoding(accepted: string): string {
  const weights = new Map(
    accepted.split(",").map((part) => {
      const [name = "", ...parameters] = part.split(";").map((text) => text.trim().toLowerCase());
      const weight = parameters.find((parameter) => parameter.startsWith("q="));
      return [name === "x-gzip" ? "gzip" : name, weight === undefined ? 1 : Number(weight.slice(2)) || 0] as const;
    }),
  );
  // Identity has weight 0 unless named. On equal weight, compression is preferred.
  const plain = weights.get("identity") ?? 0;
  let chosen = "";
  let highest = 0;
  for (const coding of Object.keys(coders)) {
    const weight = weights.get(coding) ?? weights.get("*") ?? 0;
    if (weight > highest && weight >= plain) [chosen, highest] = [coding, weight];
  }
  return chosen;
}
