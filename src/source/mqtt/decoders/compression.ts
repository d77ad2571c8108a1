// Compressed payloads, with a bound on what comes out.
import { gunzipSync, inflateRawSync, inflateSync, zstdDecompressSync } from "node:zlib";
import { PayloadError } from "./payload-error.ts";

/** Ways to compress a payload; `auto` finds out by its first bytes. */
export const compressions = ["none", "auto", "gzip", "zlib", "deflate", "zstd"] as const;
export type Compression = (typeof compressions)[number];

const inflate = {
  gzip: gunzipSync,
  zlib: inflateSync,
  deflate: inflateRawSync,
  zstd: zstdDecompressSync,
} as const;

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
    const text = error instanceof Error ? error.message : String(error);
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
