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
  if (coding === "identity" && Number(request.headers["content-length"] ?? 0) > maxBytes) throw tooLarge(maxBytes);
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
  const chunks: Buffer[] = [];
  let length = 0;
  let limit = maxBytes;
  const declared = compressed ? Number.NaN : Number(request.headers["content-length"]);
  try {
    for await (const chunk of source as AsyncIterable<Buffer>) {
      chunks.push(chunk);
      length += chunk.length;
      if (chunks.length === 1) limit = Math.min(limit, limitOf(chunk));
      if (length > limit || declared > limit) throw tooLarge(limit);
    }
  } catch (error) {
    if (compressed && error instanceof Error && "code" in error && String(error.code).startsWith("Z_"))
      throw new HttpRefusal(400, "bad_encoding", "the body is not what gzip makes");
    throw error;
  }
  // A buffer of its own, not one of the pool's, so that it can be handed to another thread.
  const whole = Buffer.from(new ArrayBuffer(length));
  let at = 0;
  for (const chunk of chunks) at += chunk.copy(whole, at);
  return whole;
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
