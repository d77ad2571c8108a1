// Payloads before decoding: decompression, text, and errors.

import { isUtf8 } from "node:buffer";
import { gunzipSync, inflateRawSync, inflateSync, zstdDecompressSync } from "node:zlib";
import { reasonOf } from "../../../core/errors.ts";

/** `message` describes the fault, in lower case, for the `reason` of a reading. */
export class PayloadError extends Error {
  override readonly name = "PayloadError";
}

/** The result of `read`, or undefined if it throws `PayloadError`. */
export function ifReadable<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch (error) {
    if (error instanceof PayloadError) return undefined;
    throw error;
  }
}

/** Printable start of a payload, for messages. */
export function sample(payload: Buffer): string {
  const text = payload.toString("latin1", 0, 60).replaceAll(/[^\x20-\x7e]/g, "·");
  return payload.length > 60 ? `${text}…` : text;
}

/** `payload` as text, without byte order mark and trailing zero bytes. Throws `PayloadError` if it is not UTF-8. */
export function utf8(payload: Buffer): string {
  if (!isUtf8(payload)) throw new PayloadError("is not UTF-8");
  let end = payload.length;
  while (end > 0 && payload[end - 1] === 0) end--;
  const text = payload.toString("utf8", 0, end);
  return text.charCodeAt(0) === 0xfeff ? text.slice(1) : text;
}

/** Compression formats. `auto` detects them by the first bytes. */
export const compressions = ["none", "auto", "gzip", "zlib", "deflate", "zstd"] as const;
export type Compression = (typeof compressions)[number];

const inflate = { gzip: gunzipSync, zlib: inflateSync, deflate: inflateRawSync, zstd: zstdDecompressSync } as const;

/** Decompresses a payload. Throws `PayloadError` if it is invalid or exceeds `maxBytes` decompressed. */
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
