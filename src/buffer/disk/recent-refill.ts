// After a start, the newest points on disk are read so that what comes again is recognised.
import type { BlockShelf } from "./block-shelf.ts";
import { type Disk, withRetries } from "./disk.ts";
import type { InputTable } from "./input-table.ts";
import { readPoints } from "./payload.ts";
import { mostRecentSegments, type RecentPoints, recentWindow } from "./recent-points.ts";
import type { Checksum } from "./record.ts";
import type { Segment } from "./segment.ts";
import type { SegmentIndex } from "./segment-index.ts";
import { SegmentReader } from "./segment-reader.ts";

/** Segments that are looked at, the one that was written last among them: bounds the time to open. */
const maxSegments = mostRecentSegments + 1;

/** Fills `recent` from the newest segments. What cannot be read is left out. */
export function rememberNewest(
  recent: RecentPoints,
  segments: readonly Segment[],
  shelf: BlockShelf,
  inputs: InputTable,
  disk: Disk,
  checksum: Checksum,
): void {
  // The last write to one that could not be mended may not be on disk: its points are to be stored when they come again.
  const newest = segments.filter(({ points, needsMending }) => points > 0 && !needsMending).slice(-maxSegments);
  let room = recentWindow;
  const parts: { readonly segment: Segment; readonly points: number }[] = [];
  for (const segment of newest.toReversed()) {
    if (room <= 0) break;
    const points = Math.min(room, segment.points);
    parts.unshift({ segment, points });
    room -= points;
  }
  for (const { segment, points } of parts)
    try {
      withRetries(() => rememberLast(recent, segment, shelf.index(segment), points, inputs, disk, checksum));
    } catch {
      // To know fewer points again is no reason not to start.
    }
}

/** The last `points` of the segment, or a few more: whole records. */
function rememberLast(
  recent: RecentPoints,
  segment: Segment,
  index: SegmentIndex,
  points: number,
  inputs: InputTable,
  disk: Disk,
  checksum: Checksum,
): void {
  let first = index.sequences.length;
  for (let left = points; first > 0 && left > 0; ) left -= index.points[--first]!;
  const numbers = index.dictionary.map((input) => (input === undefined ? undefined : inputs.numberOf(input)));
  using reader = new SegmentReader(disk, segment, index, true, checksum);
  for (let at = first; at < index.sequences.length; at++) {
    const record = reader.record(at);
    if (!record) continue;
    readPoints(record.bytes, record.at, record.header, (place, time, value) => {
      const number = numbers[place];
      if (number !== undefined) recent.remember(number, time, value);
    });
  }
}
