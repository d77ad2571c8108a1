// Applies what the state says of a segment to the segment as it was found, which may be shorter than it was.

import type { SegmentState } from "../accounts/buffer-state.ts";
import { unsettledInRecords } from "../blocks/unsettled-count.ts";
import type { Disk } from "../files/disk.ts";
import type { Checksum } from "../format/record.ts";
import { parseSegmentName } from "../format/segment-header.ts";
import type { Segment } from "../segments/segment.ts";
import { loadIndex, SegmentReader } from "../segments/segment-reader.ts";

/** Whether what the state says is about this file, which may have had another name: one that took its place has another salt. */
export function describes(state: SegmentState, { name, first, header, headerKnown }: Segment): boolean {
  if (!headerKnown) return state.name === name;
  return state.salt === header.salt && parseSegmentName(state.name)?.first === first;
}

/**
 * Settled ranges end where the segment ends. Where some of them went beyond, points of single series are counted from the
 * records that are left; what lies in damaged places counts as settled here, and shows as lost in the accounts.
 */
export function applySettled(segment: Segment, state: SegmentState, disk: Disk, checksum: Checksum): void {
  const { first, endSequence } = segment;
  let isClipped = false;
  const each = (bounds: readonly number[], add: (from: number, to: number) => void) => {
    for (let i = 0; i < bounds.length; i += 2) {
      const [from, to] = [Math.max(first, bounds[i]!), Math.min(endSequence, bounds[i + 1]!)];
      isClipped ||= to !== bounds[i + 1] || from !== bounds[i];
      if (from < to) add(from, to);
    }
  };
  for (const coverage of [segment.settled, segment.taken]) {
    each(state.whole, (from, to) => coverage.addWhole(from, to));
    for (const { place, bounds } of state.series) each(bounds, (from, to) => coverage.addSeries(place, from, to));
    for (const { place, bounds } of state.gaps) each(bounds, (from, to) => coverage.removeSeries(place, from, to));
  }
  segment.settledBySeries = state.settledBySeries;
  if (isClipped) recount(segment, disk, checksum);
}

function recount(segment: Segment, disk: Disk, checksum: Checksum): void {
  segment.settledBySeries = 0;
  if (!segment.settled.hasSeries) return;
  const index = loadIndex(disk, segment, Number.POSITIVE_INFINITY, checksum);
  using reader = new SegmentReader(disk, segment, index, true, checksum);
  const unsettled = unsettledInRecords(segment, index, reader, (from, to) => {
    for (const coverage of [segment.settled, segment.taken]) coverage.addWhole(from, to);
  });
  for (const { from, to } of index.damage)
    for (const coverage of [segment.settled, segment.taken]) coverage.addWhole(from, to);
  segment.settledBySeries = segment.unsettledPoints - unsettled;
}
