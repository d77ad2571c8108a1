// The seal, the last record of a sealed segment. It holds the totals and is found without reading the rest.
import { ByteReader, ByteWriter } from "../files/bytes.ts";
import { type Disk, type DiskFile, withFile, writeFully } from "../files/disk.ts";
import {
  isPayloadWhole,
  readRecordHeader,
  recordBytes,
  recordHeaderBytes,
  recordTypes,
  writeRecord,
} from "../format/record.ts";
import { writeSegmentHeader } from "../format/segment-header.ts";
import type { Segment } from "./segment.ts";

/** Totals of a segment. Times in microseconds; `earliest` and `latest` are NaN if there are no points. */
export interface Seal {
  readonly endSequence: number;
  readonly earliest: number;
  readonly latest: number;
  readonly lastWall: number;
  /** Uptime of the buffer in milliseconds, over all runs, when the last point was appended. */
  readonly lastUptime: number;
}

export function sealOf({ endSequence, earliest, latest, lastWall, lastUptime }: Segment): Seal {
  return { endSequence, earliest: earliest ?? Number.NaN, latest: latest ?? Number.NaN, lastWall, lastUptime };
}

const payloadBytes = 24;
export const sealBytes = recordBytes(payloadBytes);

export function writeSeal(out: ByteWriter, seal: Seal, salt: number): void {
  const fields = {
    type: recordTypes.seal,
    points: 0,
    sequence: seal.endSequence,
    from: seal.earliest,
    to: seal.latest,
    salt,
  };
  const payload = (writer: ByteWriter) => {
    writer.f64(seal.lastWall);
    writer.f64(seal.lastUptime);
    writer.f64(0);
    return 1;
  };
  writeRecord(out, fields, payload);
}

/** Reads the seal from the last `sealBytes` of a file. Undefined: the segment is not sealed, or the seal is damaged. */
export function readSeal(bytes: Uint8Array, salt: number): Seal | undefined {
  if (bytes.length !== sealBytes) return undefined;
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const header = readRecordHeader(bytes, view, 0, salt);
  if (header?.type !== recordTypes.seal || header.length !== payloadBytes) return undefined;
  if (!isPayloadWhole(bytes, 0, header)) return undefined;
  const reader = new ByteReader(bytes, recordHeaderBytes);
  return {
    endSequence: header.sequence,
    earliest: header.from,
    latest: header.to,
    lastWall: reader.f64(),
    lastUptime: reader.f64(),
  };
}

/**
 * Repairs a segment after a crash or a failed write. `header`: rewrites the header. `seal`: writes the missing seal
 * after the last intact record and truncates the file there. Returns the error of the disk, or undefined on success.
 * The segment is readable in either case.
 */
export function repairSegment(
  segment: Segment,
  disk: Disk,
  { header = false, seal = true }: { readonly header?: boolean; readonly seal?: boolean } = {},
): string | undefined {
  try {
    withFile(disk, segment.path, "write", (file) => {
      if (header) writeFully(file, writeSegmentHeader(segment.header), 0);
      // Sync the last write first: the previous process may have died before its sync. If a power cut left the seal but
      // not that write, the write would count as damage instead of as unfinished.
      if (seal) file.sync();
      const end = seal ? writeEnd(file, segment) : segment.bytes;
      file.sync();
      segment.bytes = end;
      segment.needsRepair = false;
    });
    return undefined;
  } catch (error) {
    return String(error);
  }
}

function writeEnd(file: DiskFile, segment: Segment): number {
  const out = new ByteWriter(sealBytes);
  writeSeal(out, sealOf(segment), segment.header.salt);
  writeFully(file, out.written(), segment.bytes);
  file.setSize(segment.bytes + out.length);
  return segment.bytes + out.length;
}
