// Reads the body of a request into memory, and no more of it than allowed.
import type { IncomingMessage } from "node:http";
import type { Readable } from "node:stream";
import { createGunzip } from "node:zlib";
import { formatByteSize } from "../../lib/byte-size.ts";
import { HttpRefusal } from "./http-answer.ts";

/** Refuses a body that says beforehand that it is too large, or that is compressed in a way that is not understood. */
export function checkDeclaredBody(request: IncomingMessage, maxBytes: number): void {
  const coding = (request.headers["content-encoding"] ?? "identity").toLowerCase();
  if (coding !== "identity" && coding !== "gzip")
    throw new HttpRefusal(415, "unsupported_encoding", "content-encoding must be gzip, or absent");
  // What gzip cannot make smaller it makes longer by a thousandth at most.
  const mayHave = coding === "identity" ? maxBytes : maxBytes * 1.01;
  if (Number(request.headers["content-length"] ?? 0) > mayHave) throw tooLarge(maxBytes);
}

/**
 * Resolves with the body, inflated if need be. `limitOf` is asked with the beginning of the body as soon as there is
 * one; it may lower the limit. Rejects with `HttpRefusal`, or with an error when the client went away.
 */
export async function readBody(
  request: IncomingMessage,
  maxBytes: number,
  limitOf: (beginning: Buffer) => number,
): Promise<Buffer> {
  const compressed = request.headers["content-encoding"]?.toLowerCase() === "gzip";
  const source: Readable = compressed ? inflated(request) : request;
  const declared = compressed ? Number.NaN : Number(request.headers["content-length"]);
  const body = new Gathering(declared > 0 && declared <= maxBytes ? declared : firstBytes);
  let limit = maxBytes;
  try {
    for await (const chunk of source as AsyncIterable<Buffer>) {
      if (body.length === 0) limit = Math.min(limit, limitOf(chunk));
      if (body.length + chunk.length > limit || declared > limit) throw tooLarge(limit);
      body.append(chunk);
    }
  } catch (error) {
    if (compressed && error instanceof Error && "code" in error && String(error.code).startsWith("Z_"))
      throw new HttpRefusal(400, "bad_encoding", "the body is not what gzip makes");
    throw error;
  }
  return body.whole();
}

const firstBytes = 16_384;

/** Bytes in one buffer of their own that grows, so that they can be handed to another thread without a copy. */
class Gathering {
  #bytes: Buffer;
  #length = 0;

  constructor(capacity: number) {
    this.#bytes = Buffer.from(new ArrayBuffer(capacity));
  }

  get length(): number {
    return this.#length;
  }

  append(chunk: Buffer): void {
    const needed = this.#length + chunk.length;
    if (needed > this.#bytes.length) this.#resize(Math.max(needed, this.#bytes.length * 2));
    chunk.copy(this.#bytes, this.#length);
    this.#length = needed;
  }

  whole(): Buffer {
    if (this.#length < this.#bytes.length) this.#resize(this.#length);
    return this.#bytes;
  }

  #resize(capacity: number): void {
    const resized = Buffer.from(new ArrayBuffer(capacity));
    this.#bytes.copy(resized, 0, 0, Math.min(this.#length, capacity));
    this.#bytes = resized;
  }
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
