// Writes the totals behind the last whole record of a segment and cuts off what follows: after a crash, and after a write
// that failed, once the disk takes it.
import { ByteWriter } from "../files/bytes.ts";
import { type Disk, type DiskFile, writeFully } from "../files/disk.ts";
import type { Checksum } from "../format/record.ts";
import { writeSegmentHeader } from "../format/segment-header.ts";
import { sealBytes, sealOf, writeSeal } from "./seal.ts";
import type { Segment } from "./segment.ts";

/** Undefined when it was done; else what the disk said. The segment can be read all the same. */
export function mendSegment(
  segment: Segment,
  disk: Disk,
  checksum: Checksum,
  options: MendOptions = {},
): string | undefined {
  const { header = false, seal = true } = options;
  try {
    const file = disk.open(segment.path, "write");
    try {
      if (header) writeFully(file, writeSegmentHeader(segment.header), 0);
      // The last write may not be safe yet, where the process alone died. Were the totals on disk and it was not, it would
      // be taken for damage instead of a write that never ended.
      if (seal) file.sync();
      const end = seal ? writeEnd(file, segment, checksum) : segment.bytes;
      file.sync();
      segment.bytes = end;
      segment.needsMending = false;
    } finally {
      file.close();
    }
    return undefined;
  } catch (error) {
    return String(error);
  }
}

export interface MendOptions {
  /** Write the header anew. */
  readonly header?: boolean;
  /** Write the totals; not where they are there. */
  readonly seal?: boolean;
}

function writeEnd(file: DiskFile, segment: Segment, checksum: Checksum): number {
  const out = new ByteWriter(sealBytes);
  writeSeal(out, sealOf(segment), segment.header.salt, checksum);
  writeFully(file, out.written(), segment.bytes);
  file.setSize(segment.bytes + out.length);
  return segment.bytes + out.length;
}
