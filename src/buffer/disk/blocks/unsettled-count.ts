// Counts the points of a segment's records that are not settled, by reading those of which only some series are.
import { readPoints } from "../format/payload.ts";
import type { SegmentIndex } from "../format/segment-index.ts";
import type { Segment } from "../segments/segment.ts";
import type { SegmentReader } from "../segments/segment-reader.ts";

/** `onDamage` is called for the sequence numbers and the number of each record that cannot be read; its points are not counted. Throws what the disk throws. */
export function unsettledInRecords(
  { settled }: Pick<Segment, "settled">,
  index: SegmentIndex,
  reader: SegmentReader,
  onDamage: (from: number, to: number, record: number) => void,
): number {
  let unsettled = 0;
  for (let i = 0; i < index.sequences.length; i++) {
    const from = index.sequences[i]!;
    const to = from + index.points[i]!;
    if (settled.coversAll(from, to)) continue;
    const record = reader.record(i);
    let points = 0;
    try {
      if (record)
        readPoints(record.bytes, record.at, record.header, (place) => {
          if (!settled.covers(place, from, to)) points++;
        });
    } catch {
      points = -1;
    }
    if (record && points >= 0) unsettled += points;
    else onDamage(from, to, i);
  }
  return unsettled;
}
