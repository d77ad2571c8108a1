// What of a segment is lost: damaged points, each counted once with a copy of its bytes in quarantine, and the points of
// a dropped segment.
import { attempt } from "../../../lib/flow/attempt.ts";
import { joinedSpan, type LostRange, type LostSpan } from "../counters/point-counters.ts";
import { copyToQuarantine, type DiskFile, readPart, withFile } from "../files/disk.ts";
import { readPoints } from "../format/record.ts";
import type { Damage, SegmentIndex } from "../format/segment-file.ts";
import { type LogParts, type Segment, SegmentReader } from "../segments/segment.ts";
import type { Lease, SeriesTimes } from "./lease.ts";

type DamagedRange = Omit<Damage, "offset" | "bytes">;

/**
 * Counts the damaged points of a segment, from its index and from `found`, and writes them off. Skips leased points,
 * which may have been read before; a later call counts them.
 */
export function countDamage(
  parts: LogParts,
  segment: Segment,
  index: SegmentIndex,
  found: readonly DamagedRange[] = [],
): void {
  const open = [...index.damage, ...found].filter(
    ({ from, to }) => to > from && !segment.settled.coversAll(from, to) && !isLeased(segment, from, to),
  );
  if (open.length === 0) return;
  parts.counters.changed = true;
  const mixed = open.filter(({ from, to }) => segment.settled.touchesSeries(from, to));
  for (const range of open) if (!mixed.includes(range)) countWhole(parts, segment, index, range);
  if (mixed.length > 0) countMixed(parts, segment, index, mixed);
}

function countWhole(parts: LogParts, segment: Segment, index: SegmentIndex, range: DamagedRange): void {
  const { from, to, earliest, latest } = range;
  const points = to - from - segment.settled.whole.countIn(from, to);
  segment.writeOff(from, to);
  segment.settledPoints += points;
  report(parts, segment, index, [range], { points, from: earliest, to: latest, first: from, end: to });
}

/**
 * Counts ranges in which some series are settled. Only the damaged bytes recorded how many points the other series
 * have. So the count is the unsettled points of the segment minus those in readable records.
 */
function countMixed(parts: LogParts, segment: Segment, index: SegmentIndex, known: readonly DamagedRange[]): void {
  const ranges = [...known];
  const isKnown = (from: number) => ranges.some((each) => each.from <= from && from < each.to);
  using reader = new SegmentReader(parts.disk, segment, index, true);
  const intact = unsettledInRecords(segment, index, reader, (from, to, record) => {
    if (isKnown(from)) return;
    ranges.push({ from, to, earliest: index.earliest[record], latest: index.latest[record] });
  });
  // A later call counts the damage once the leases have ended.
  if (ranges.some(({ from, to }) => isLeased(segment, from, to))) return;
  const points = segment.unsettledPoints - intact;
  for (const { from, to } of ranges) segment.writeOff(from, to);
  segment.settledPoints = segment.points - intact;
  let loss: LostSpan = { points, from: undefined, to: undefined };
  for (const { earliest: from, latest: to } of ranges) loss = joinedSpan(loss, { points: 0, from, to });
  report(parts, segment, index, ranges, loss);
}

/** Whether a point of the range may be leased. True also if leased and settled series cannot be distinguished. */
function isLeased({ blocksOut, settled, taken }: Segment, from: number, to: number): boolean {
  if (blocksOut === 0) return false;
  if (settled.touchesSeries(from, to) || taken.touchesSeries(from, to)) return true;
  return taken.whole.countIn(from, to) !== settled.whole.countIn(from, to);
}

function report(
  parts: LogParts,
  segment: Segment,
  index: SegmentIndex,
  ranges: readonly DamagedRange[],
  loss: LostRange,
): void {
  if (loss.points <= 0) return;
  parts.counters.losses.add("damaged", loss);
  let left = loss.points;
  for (const { from, to } of ranges) {
    const points = Math.min(left, to - from);
    parts.counters.removed.add(from, to, points, "damaged");
    left -= points;
  }
  for (const { from } of ranges) copyDamage(parts, segment, index, from);
  const fields = { segment: segment.name, points: loss.points };
  parts.note("error", fields, "points are damaged on disk and were set aside");
}

/**
 * To be called when no point of the segment is free. If the segment is sealed and has no leases, its unsettled points
 * are unreadable: counts them as lost.
 */
export function writeOffRest(parts: LogParts, segment: Segment): void {
  if (!segment.sealed || segment.blocksOut > 0 || segment.unsettledPoints <= 0) return;
  const points = segment.unsettledPoints;
  const loss = { points, from: segment.earliest, to: segment.latest };
  parts.counters.lose("damaged", loss, segment.first, segment.endSequence);
  segment.settleAll();
  parts.note("error", { segment: segment.name, points }, "points are damaged on disk and were set aside");
}

function copyDamage({ disk, folder }: LogParts, segment: Segment, index: SegmentIndex, sequence: number): void {
  const at = index.sequences.indexOf(sequence);
  const record = at < 0 ? undefined : { offset: index.offsets[at]!, bytes: bytesOf(index, at) };
  const damage = index.damage.find(({ from }) => from === sequence) ?? record;
  if (!damage) return;
  const read = (file: DiskFile) => readPart(file, damage.offset, Math.min(damage.bytes, 2 ** 19));
  const bytes = attempt(() => withFile(disk, segment.path, "read", read));
  if (bytes) copyToQuarantine(disk, folder, `${segment.name}-${damage.offset}.bin`, bytes);
}

function bytesOf({ offsets, endOffset }: SegmentIndex, record: number): number {
  return (offsets[record + 1] ?? endOffset) - offsets[record]!;
}

/** Counts unsettled points in readable records. Calls `onDamage` with the numbers and index of each other record. */
export function unsettledInRecords(
  { settled }: Pick<Segment, "settled">,
  index: SegmentIndex,
  reader: SegmentReader,
  onDamage: (from: number, to: number, record: number) => void,
): number {
  let unsettled = 0;
  for (let i = 0; i < index.sequences.length; i++) {
    const [from, to] = index.rangeOf(i);
    if (settled.coversAll(from, to)) continue;
    const record = reader.record(i);
    let points = 0;
    const count = (place: number, { length }: Float64Array) => {
      if (!settled.covers(place, from, to)) points += length;
    };
    const isRead = record && attempt(() => readPoints(record.bytes, record.at, record.header, count) === undefined);
    if (isRead) unsettled += points;
    else onDamage(from, to, i);
  }
  return unsettled;
}

/** Maximum ranges reported per segment. Beyond it, ranges with the smallest gap between them are joined. */
const mostRanges = 8;

/** The number and times of the points of a dropped segment that are neither settled nor leased. */
export interface SegmentLoss {
  readonly ranges: readonly LostRange[];
  readonly leased: ReadonlyMap<number, SeriesTimes>;
}

/** A single range, if the segment cannot be read or none of it was settled or leased. */
export function wholeLoss(segment: Segment, leasedPoints: number): SegmentLoss {
  const { earliest, latest, first, endSequence } = segment;
  const points = segment.unsettledPoints - leasedPoints;
  const isWhole = points === segment.points;
  const place = isWhole ? { first, end: endSequence } : {};
  return { ranges: [{ points, from: earliest, to: latest, ...place }], leased: new Map() };
}

/** The loss of a segment of which some points were settled or leased: reads it. */
export function segmentLoss(
  segment: Segment,
  index: SegmentIndex,
  reader: SegmentReader,
  blocks: ReadonlyMap<number, Lease>,
): SegmentLoss {
  const { settled, taken } = segment;
  const leases = Array.from(blocks, ([id, lease]) => ({
    id,
    ranges: new Map(Array.from(lease.parts(), (part) => [part.place, part.ranges])),
    times: new Map<number, { from: number; to: number }>(),
  }));
  const ranges: PlacedRange[] = [];
  let left = segment.unsettledPoints;
  for (let i = 0; i < index.sequences.length; i++) {
    const [first, end] = index.rangeOf(i);
    const lost = { points: 0, from: Number.POSITIVE_INFINITY, to: Number.NEGATIVE_INFINITY, first, end };
    if (!taken.whole.touches(first, end) && !taken.mayTouchSeries(first, end)) {
      lost.points = end - first;
      lost.from = index.earliest[i]!;
      lost.to = index.latest[i]!;
    } else if (!settled.coversAll(first, end))
      reader.visit(i, (place, times) => {
        if (settled.covers(place, first, end)) return;
        const [from, to] = [times[0]!, times.at(-1)!];
        if (!taken.covers(place, first, end)) {
          lost.points += times.length;
          extend(lost, from, to);
          return;
        }
        left -= times.length;
        const spans = leases.find(({ ranges }) => ranges.get(place)?.covers(first, end))?.times;
        const span = spans?.get(place);
        if (span) extend(span, from, to);
        else spans?.set(place, { from, to });
      });
    if (lost.points === 0) continue;
    left -= lost.points;
    const last = ranges.at(-1);
    if (last?.end === first) ranges.push(together(ranges.pop()!, lost));
    else ranges.push(lost);
  }
  const rest: LostRange[] = left > 0 ? [{ points: left, from: segment.earliest, to: segment.latest }] : [];
  return { ranges: [...fewer(ranges), ...rest], leased: new Map(leases.map(({ id, times }) => [id, times])) };
}

type PlacedRange = LostRange & { readonly first: number; readonly end: number };

function extend(span: { from: number; to: number }, from: number, to: number): void {
  span.from = Math.min(span.from, from);
  span.to = Math.max(span.to, to);
}

const together = (a: PlacedRange, b: PlacedRange) => ({ ...joinedSpan(a, b), first: a.first, end: b.end });

function fewer(ranges: readonly PlacedRange[]): PlacedRange[] {
  const kept = [...ranges];
  while (kept.length > mostRanges) {
    let closest = 1;
    const gap = (i: number) => kept[i]!.first - kept[i - 1]!.end;
    for (let i = 2; i < kept.length; i++) if (gap(i) < gap(closest)) closest = i;
    kept.splice(closest - 1, 2, together(kept[closest - 1]!, kept[closest]!));
  }
  return kept;
}
