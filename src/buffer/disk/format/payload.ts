// The payload of a record of points: columns as they are (version 1) or squeezed with zstd (version 2).
import { zstdDecompressSync } from "node:zlib";
import { ByteReader } from "../files/bytes.ts";
import { type PointVisitor, readColumns } from "./columns.ts";
import type { RecordHeader } from "./record.ts";
import { recordHeaderBytes } from "./record.ts";

/** No record holds more when it is unpacked: each point takes less than 24 bytes. */
const maxOutputLength = 2 ** 21;

/** Calls `visit` for each point of the record at `at`, which is known to be whole. */
export function readPoints(bytes: Uint8Array, at: number, header: RecordHeader, visit: PointVisitor): void {
  const start = at + recordHeaderBytes;
  const end = start + header.length;
  if (header.version === 1) readColumns(new ByteReader(bytes, start, end), header.from, visit);
  else {
    const columns = zstdDecompressSync(bytes.subarray(start, end), { maxOutputLength });
    readColumns(new ByteReader(columns), header.from, visit);
  }
}
