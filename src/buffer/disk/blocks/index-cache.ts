// The indices of the few segments that were used last: what is in them, found out by reading them.
import type { SegmentIndex } from "../format/segment-index.ts";
import type { LogParts } from "../segments/environment.ts";
import type { Segment } from "../segments/segment.ts";
import { loadIndex } from "../segments/segment-reader.ts";

/** Of segments that are not being written. */
const mostKept = 2;

export class IndexCache {
  readonly #parts: LogParts;
  /** The one used last at the end. */
  readonly #kept: Segment[] = [];

  constructor(parts: LogParts) {
    this.#parts = parts;
  }

  /** `onLoad` is called where the file is read. Throws what the disk throws. */
  of(segment: Segment, onLoad: (index: SegmentIndex) => void): SegmentIndex {
    const known = this.#kept.indexOf(segment);
    if (known >= 0) this.#kept.push(...this.#kept.splice(known, 1));
    if (segment.index) return segment.index;
    const { disk, checksum, segments } = this.#parts;
    const limit = segments[segments.indexOf(segment) + 1]?.first ?? Number.POSITIVE_INFINITY;
    const index = loadIndex(disk, segment, limit, checksum);
    segment.index = index;
    onLoad(index);
    this.keep(segment);
    return index;
  }

  keep(segment: Segment): void {
    if (!this.#kept.includes(segment)) this.#kept.push(segment);
    while (this.#kept.length > mostKept) {
      const oldest = this.#kept.shift();
      if (oldest) oldest.index = undefined;
    }
  }

  /** The segment is gone. */
  forget(segment: Segment): void {
    const at = this.#kept.indexOf(segment);
    if (at >= 0) this.#kept.splice(at, 1);
  }
}
