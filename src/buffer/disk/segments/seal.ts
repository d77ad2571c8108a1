// The last record of a sealed segment: its totals, at a place that is found without reading the rest.
import { ByteReader, ByteWriter } from "../files/bytes.ts";
import { type Disk, type DiskFile, withFile, writeFully } from "../files/disk.ts";
import {
  type Checksum,
  isPayloadWhole,
  readRecordHeader,
  recordBytes,
  recordHeaderBytes,
  recordTypes,
  writeRecord,
} from "../format/record.ts";
import { writeSegmentHeader } from "../format/segment-header.ts";
import type { Segment } from "./segment.ts";

/** Totals of a segment. Times in microseconds; `earliest` and `latest` are NaN where there are no points. */
export interface Seal {
  readonly endSequence: number;
  readonly earliest: number;
  readonly latest: number;
  readonly lastWall: number;
  /** Milliseconds that the buffer had been open in its life when the last point came. */
  readonly lastUptime: number;
}

/** The totals of `segment` as it is. */
export function sealOf({ endSequence, earliest, latest, lastWall, lastUptime }: Segment): Seal {
  return { endSequence, earliest: earliest ?? Number.NaN, latest: latest ?? Number.NaN, lastWall, lastUptime };
}

const payloadBytes = 24;
/** A sealed file ends with these bytes. */
export const sealBytes = recordBytes(payloadBytes);

export function writeSeal(out: ByteWriter, seal: Seal, salt: number, checksum: Checksum): void {
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
  writeRecord(out, fields, payload, checksum);
}

/** The seal in the last `sealBytes` of a file. Undefined: the segment was not sealed, or the seal is damaged. */
export function readSeal(bytes: Uint8Array, salt: number, checksum: Checksum): Seal | undefined {
  if (bytes.length !== sealBytes) return undefined;
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const header = readRecordHeader(bytes, view, 0, salt, checksum);
  if (header?.type !== recordTypes.seal || header.length !== payloadBytes) return undefined;
  if (!isPayloadWhole(bytes, 0, header, checksum)) return undefined;
  const reader = new ByteReader(bytes, recordHeaderBytes);
  return {
    endSequence: header.sequence,
    earliest: header.from,
    latest: header.to,
    lastWall: reader.f64(),
    lastUptime: reader.f64(),
  };
}

// Writes the totals behind the last whole record of a segment and cuts off what follows: after a crash, and after a write
// that failed, once the disk takes it.

/**
 * `header`: writes the header again. `seal`: writes the totals, which are not there. Gives undefined when both are on disk,
 * else the error of the disk; the segment can be read in either case.
 */
export function mendSegment(
  segment: Segment,
  disk: Disk,
  checksum: Checksum,
  { header = false, seal = true }: { readonly header?: boolean; readonly seal?: boolean } = {},
): string | undefined {
  try {
    withFile(disk, segment.path, "write", (file) => {
      if (header) writeFully(file, writeSegmentHeader(segment.header), 0);
      // The last write may not be safe yet, where the process alone died. Were the totals on disk and it was not, it would
      // be taken for damage instead of a write that never ended.
      if (seal) file.sync();
      const end = seal ? writeEnd(file, segment, checksum) : segment.bytes;
      file.sync();
      segment.bytes = end;
      segment.needsMending = false;
    });
    return undefined;
  } catch (error) {
    return String(error);
  }
}

function writeEnd(file: DiskFile, segment: Segment, checksum: Checksum): number {
  const out = new ByteWriter(sealBytes);
  writeSeal(out, sealOf(segment), segment.header.salt, checksum);
  writeFully(file, out.written(), segment.bytes);
  file.setSize(segment.bytes + out.length);
  return segment.bytes + out.length;
}
