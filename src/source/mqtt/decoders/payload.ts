// A payload before it is decoded: compressed, as text, or not what the configuration says it is.

import { isUtf8 } from "node:buffer";
import { gunzipSync, inflateRawSync, inflateSync, zstdDecompressSync } from "node:zlib";
import { reasonOf } from "../../../core/errors.ts";

/** The message says what is wrong, for people, in lower case: it becomes the `reason` of a reading. */
export class PayloadError extends Error {
  override readonly name = "PayloadError";
}

/** What `read` gives; undefined where the payload is not what it reads. */
export function ifReadable<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch (error) {
    if (error instanceof PayloadError) return undefined;
    throw error;
  }
}

/** The beginning of a payload, printable, for messages. */
export function sample(payload: Buffer): string {
  const text = payload.toString("latin1", 0, 60).replaceAll(/[^\x20-\x7e]/g, "·");
  return payload.length > 60 ? `${text}…` : text;
}

/** The text of `payload`, without byte order mark and trailing zero bytes. Throws `PayloadError` when it is not UTF-8. */
export function utf8(payload: Buffer): string {
  if (!isUtf8(payload)) throw new PayloadError("is not UTF-8");
  let end = payload.length;
  while (end > 0 && payload[end - 1] === 0) end--;
  const text = payload.toString("utf8", 0, end);
  return text.charCodeAt(0) === 0xfeff ? text.slice(1) : text;
}

/** Ways to compress a payload; `auto` finds out by its first bytes. */
export const compressions = ["none", "auto", "gzip", "zlib", "deflate", "zstd"] as const;
export type Compression = (typeof compressions)[number];

const inflate = { gzip: gunzipSync, zlib: inflateSync, deflate: inflateRawSync, zstd: zstdDecompressSync } as const;

/** The payload as it was before. Throws `PayloadError` when it is not compressed so, or larger than `maxBytes` then. */
export function decompress(payload: Buffer, compression: Compression, maxBytes: number): Buffer {
  const way = compression === "auto" ? byMagic(payload) : compression;
  if (way === "none") return payload;
  try {
    return inflate[way](payload, { maxOutputLength: maxBytes });
  } catch (error) {
    const tooLarge =
      error instanceof RangeError ||
      (error instanceof Error && "code" in error && error.code === "ERR_BUFFER_TOO_LARGE");
    const text = reasonOf(error);
    throw new PayloadError(tooLarge ? `is larger than ${maxBytes} bytes when inflated` : `is not ${way}: ${text}`, {
      cause: error,
    });
  }
}

function byMagic(payload: Buffer): Exclude<Compression, "auto"> {
  const start = payload.subarray(0, 4).toString("hex");
  if (start.startsWith("1f8b")) return "gzip";
  if (start === "28b52ffd") return "zstd";
  return /^78(01|5e|9c|da)/.test(start) ? "zlib" : "none";
}
