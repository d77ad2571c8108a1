// Caches the indices of the segments used last.
import type { SegmentIndex } from "../format/segment-index.ts";
import type { LogParts } from "../segments/environment.ts";
import type { Segment } from "../segments/segment.ts";
import { loadIndex } from "../segments/segment-reader.ts";

const mostKept = 2;

export class IndexCache {
  readonly #parts: LogParts;
  /** Least recently used first. */
  readonly #kept: Segment[] = [];

  constructor(parts: LogParts) {
    this.#parts = parts;
  }

  /** Calls `onLoad` if it had to read the file. Throws the disk's error. */
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

  forget(segment: Segment): void {
    const at = this.#kept.indexOf(segment);
    if (at >= 0) this.#kept.splice(at, 1);
  }
}
