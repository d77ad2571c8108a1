// Hands out blocks and takes back what becomes of them. Knows which points are free, handed out, settled or lost.
import type { LossReason } from "../accounts/loss-ledger.ts";
import { diskErrorCode } from "../files/disk.ts";
import type { SegmentIndex } from "../format/segment-index.ts";
import { SeriesSorter } from "../format/series-sorter.ts";
import type { LogParts } from "../segments/environment.ts";
import type { Segment } from "../segments/segment.ts";
import { loadIndex, SegmentReader } from "../segments/segment-reader.ts";
import { cutBlock } from "./block-cut.ts";
import { layOut, type Taken, type TakeRequest } from "./block-layout.ts";
import { countDamage, writeOffRest } from "./damage-books.ts";
import { DroppedBlocks, type SegmentLoss, segmentLoss, wholeLoss } from "./dropped-blocks.ts";
import { SeriesOut } from "./series-out.ts";
import { type BlockSettlement, type LeasedBlock, SettlementOrder } from "./settlement-order.ts";

interface BlockOut extends LeasedBlock {
  readonly segment: Segment;
  /** When it was handed out. */
  readonly points: number;
  /** `settled.whole` has its stretches, with gaps for what is not settled. */
  asWhole: boolean;
}

const nothing: Taken = { block: undefined, resumeAt: undefined };
/** Segments that are read from end to end in one request, to find the series that are asked for. */
const maxReads = 2;
/** Indices kept of segments that are not being written. */
const indicesKept = 2;
/**
 * Series of segments of which is remembered by themselves what is taken: some 500 bytes each. Beyond it nothing more is
 * taken by series, until segments are done with.
 */
const maxSeries = 32_768;
/** Stands for an Input ID of which every copy is damaged. */
const nameless = -1;
const noneLate: ReadonlySet<number> = new Set();

export class BlockShelf {
  readonly #options: LogParts;
  readonly #out = new Map<number, BlockOut>();
  /** Leased when their segments were dropped. */
  readonly dropped: DroppedBlocks;
  readonly #order = new SettlementOrder(this.#out);
  /** Segments that the disk did not give when they were last read. */
  readonly #unreadable = new Set<Segment>();
  /** Times of late records that wait for an unreadable segment: late points behind them wait as well. */
  readonly #withheld = new Map<Segment, { earliest: number; latest: number }>();
  readonly #sorter = new SeriesSorter();
  /** Segments whose index was loaded from disk, the one used last at the end. */
  readonly #indexed: Segment[] = [];
  #nextId: number;
  /** Something was settled or lost since the state was written. */
  changed = false;

  constructor(options: LogParts) {
    this.#options = options;
    this.dropped = new DroppedBlocks(options.accounts);
    // At random, since another buffer that takes the place of this one may have been opened as often.
    this.#nextId = options.accounts.opens * 2 ** 32 + (options.random32() >>> 1);
  }

  /** Whether there is a segment that the disk did not give when it was last read. */
  get isUnread(): boolean {
    return this.#unreadable.size > 0;
  }

  take(request: TakeRequest): Taken {
    const { segments } = this.#options;
    const { lane, inputs, except, from } = request;
    if (inputs && segments.reduce((sum, { taken }) => sum + taken.seriesCount, 0) >= maxSeries) return nothing;
    let reads = 0;
    for (let i = 0; i < segments.length; i++) {
      const segment = segments[lane === "backlog" ? i : segments.length - 1 - i]!;
      if (from !== undefined && (lane === "backlog" ? segment.first < from : segment.first > from)) continue;
      if (segment.points === 0 || isTaken(segment, inputs, except)) continue;
      if (inputs && !segment.index && reads++ === maxReads) return { block: undefined, resumeAt: segment.first };
      try {
        const block = this.#takeFrom(segment, request);
        this.#unreadable.delete(segment);
        if (block) return { block, resumeAt: undefined };
      } catch (error) {
        // A segment that cannot be read now keeps nothing else back but late points, which may replace points in it.
        if (diskErrorCode(error) === "") throw error;
        this.#unreadable.add(segment);
        this.#options.note("error", { segment: segment.name, err: String(error) }, "a segment cannot be read");
      }
    }
    return nothing;
  }

  /**
   * Says whether points of dropped segments were among them. A power cut does not bring those again: it would leave them
   * counted as lost.
   */
  settle(done: readonly BlockSettlement[]): boolean {
    const droppedBefore = this.dropped.points;
    for (const settlement of done) if (this.#order.admit(settlement)) this.#settle(settlement);
    this.#settleReady();
    return this.dropped.points < droppedBefore;
  }

  release(blocks: Iterable<number>): void {
    for (const id of blocks) {
      const out = this.#out.get(id);
      if (!out) {
        if (this.dropped.release(id)) this.changed = true;
        continue;
      }
      const followers = this.#order.release(id);
      const { segment, series, asWhole } = out;
      const { whole } = series;
      if (whole.isEmpty || asWhole) for (const { place, bounds } of series.parts()) uncover(segment, place, bounds);
      else {
        const leasedByOthers = [...segment.taken.coveredOf(series.leftOut)];
        for (const [from, to] of whole.ranges()) segment.taken.removeWhole(from, to);
        for (const [place, from, to] of leasedByOthers) segment.taken.addSeries(place, from, to);
        // What was settled of it already is settled.
        for (const [place, ranges] of segment.settled.series())
          for (const [from, to] of ranges.ranges()) segment.taken.addSeries(place, from, to);
      }
      this.#return(id, out);
      this.release(followers);
    }
    this.#settleReady();
  }

  releaseAll(): void {
    this.release([...this.#out.keys()]);
    this.dropped.releaseAll();
  }

  /**
   * The segment is dropped: says what of it is lost now. Leased points are lost when their block is released, and delivered
   * when it is settled.
   */
  drop(segment: Segment, reason: LossReason): SegmentLoss {
    const blocks = new Map<number, SeriesOut>();
    for (const [id, out] of this.#out) {
      if (out.segment !== segment) continue;
      // Delivered points are not lost. What they replaced goes with this segment or was delivered before.
      for (const settlement of this.#order.forget(id)) this.#settle(settlement);
      if (this.#out.has(id)) blocks.set(id, out.series);
    }
    const loss = this.#lossOf(segment, blocks);
    const { first, endSequence: end } = segment;
    for (const [id, series] of blocks)
      this.dropped.add(id, { reason, series, times: loss.leased.get(id) ?? new Map(), first, end });
    segment.settleAll();
    this.forget(segment);
    return loss;
  }

  #lossOf(segment: Segment, blocks: ReadonlyMap<number, SeriesOut>): SegmentLoss {
    let leasedPoints = 0;
    for (const { points } of blocks.values()) leasedPoints += points;
    if (segment.taken.isEmpty) return wholeLoss(segment, 0);
    try {
      const { disk, checksum } = this.#options;
      const index = this.index(segment);
      using reader = new SegmentReader(disk, segment, index, true, checksum);
      return segmentLoss(segment, index, reader, blocks);
    } catch {
      // A file that is gone or cannot be read tells no more than the accounts do.
      return wholeLoss(segment, leasedPoints);
    }
  }

  /** The segment is gone: what is out of it can no longer be settled. */
  forget(segment: Segment): void {
    for (const [id, out] of this.#out) {
      if (out.segment !== segment) continue;
      this.#order.forget(id);
      this.#out.delete(id);
    }
    this.#unreadable.delete(segment);
    this.#withheld.delete(segment);
    this.#settleReady();
    const at = this.#indexed.indexOf(segment);
    if (at >= 0) this.#indexed.splice(at, 1);
  }

  /** What of a segment is in it, found out by reading it if need be; what turns out to be damaged is counted. */
  index(segment: Segment): SegmentIndex {
    const known = this.#indexed.indexOf(segment);
    if (known >= 0) this.#indexed.push(...this.#indexed.splice(known, 1));
    if (segment.index) return segment.index;
    const { disk, checksum } = this.#options;
    const index = loadIndex(disk, segment, this.#limitOf(segment), checksum);
    segment.index = index;
    if (countDamage(this.#options, segment, index)) this.changed = true;
    this.keepIndex(segment);
    return index;
  }

  /** The index of a segment that is not written any more: one of the few that are kept. */
  keepIndex(segment: Segment): void {
    if (!this.#indexed.includes(segment)) this.#indexed.push(segment);
    while (this.#indexed.length > indicesKept) {
      const oldest = this.#indexed.shift();
      if (oldest) oldest.index = undefined;
    }
  }

  #takeFrom(segment: Segment, { lane, maxPoints, enough = maxPoints, inputs, except }: TakeRequest) {
    const { disk, checksum } = this.#options;
    const index = this.index(segment);
    // What was leased before may have come back.
    if (index.damage.length > 0 && countDamage(this.#options, segment, index)) this.changed = true;
    const numbers = index.dictionary.map((name) =>
      name === undefined ? nameless : this.#options.inputs.numberOf(name),
    );
    segment.numbers = segment.taken.hasGaps || except ? numbers : undefined;
    if (inputs && !numbers.some((number) => inputs.has(number))) return undefined;
    const isNamed = (place: number) => (numbers[place] ?? nameless) !== nameless;
    const isDamaged = index.damage.length > 0;
    const leavesOut = except !== undefined && numbers.some((number) => except.has(number));
    const wanted = (place: number) => {
      const number = numbers[place] ?? nameless;
      return (!isDamaged || number !== nameless) && (inputs?.has(number) ?? true) && !except?.has(number);
    };
    using reader = new SegmentReader(disk, segment, index, lane === "backlog", checksum);
    const onDamage = (record: number) => {
      const from = index.sequences[record]!;
      const to = from + index.points[record]!;
      const lost = { from, to, earliest: index.earliest[record], latest: index.latest[record] };
      if (countDamage(this.#options, segment, index, [lost])) this.changed = true;
    };
    // Of others, no point that is asked for is left.
    const unread = [...this.#unreadable].filter((each) => !isTaken(each, inputs, except));
    let withholds = false;
    if (lane === "backlog" && !inputs) this.#withheld.delete(segment);
    const withheld = (record: number) => {
      const isWithheld =
        index.late[record] === true && (lane === "live" || this.#mayReplaceUnread(segment, index, record, unread));
      withholds ||= isWithheld;
      if (isWithheld && lane === "backlog") this.#withhold(segment, index, record);
      return isWithheld;
    };
    const cut = cutBlock(segment, index, reader, {
      lane,
      maxPoints,
      enough,
      wanted: inputs || leavesOut || isDamaged ? wanted : undefined,
      // Where names may be lost, series are looked at one by one.
      bySeries: inputs !== undefined || isDamaged,
      isNamed,
      withheld,
      onDamage,
    });
    if (!cut) {
      if (!inputs && !leavesOut && !withholds && writeOffRest(this.#options, segment)) this.changed = true;
      return undefined;
    }
    const { taken } = segment;
    for (const [from, to] of cut.whole.ranges()) taken.addWhole(from, to);
    for (const [place, ranges] of cut.leftOut)
      for (const [from, to] of ranges.ranges()) taken.removeSeries(place, from, to);
    if (cut.whole.isEmpty)
      for (const { place, ranges } of cut.series.values())
        for (const [from, to] of ranges.ranges()) taken.addSeries(place, from, to);
    segment.blocksOut++;
    const id = this.#nextId++;
    const { block, places } = layOut(id, cut, numbers, this.#sorter);
    const series = new SeriesOut(cut, block.inputs, places, block.valueStarts);
    const late = block.late.includes(1) ? new Set(block.inputs.filter((_, i) => block.late[i] === 1)) : noneLate;
    this.#out.set(id, { segment, series, late, points: cut.points, asWhole: false });
    return block;
  }

  /** Whether the record holds late points that may have to come after points of a segment that cannot be read now. */
  #mayReplaceUnread(segment: Segment, index: SegmentIndex, record: number, unread: readonly Segment[]): boolean {
    for (const { first, earliest = Number.NEGATIVE_INFINITY, latest = Number.POSITIVE_INFINITY } of unread)
      if (first < segment.first && index.earliest[record]! <= latest && index.latest[record]! >= earliest) return true;
    if (this.#unreadable.size === 0) this.#withheld.clear();
    for (const [{ first }, { earliest, latest }] of this.#withheld)
      if (first <= segment.first && index.earliest[record]! <= latest && index.latest[record]! >= earliest) return true;
    return false;
  }

  #withhold(segment: Segment, index: SegmentIndex, record: number): void {
    const { earliest, latest } = this.#withheld.get(segment) ?? { earliest: Infinity, latest: -Infinity };
    this.#withheld.set(segment, {
      earliest: Math.min(earliest, index.earliest[record]!),
      latest: Math.max(latest, index.latest[record]!),
    });
  }

  #settleReady(): void {
    for (const settlement of this.#order.ready()) this.#settle(settlement);
  }

  #settle({ block, inputs, refused }: BlockSettlement): void {
    const out = this.#out.get(block);
    if (!out) {
      // Where it is neither, all of it was settled before.
      if (this.dropped.settle(block, inputs, refused)) this.changed = true;
      return;
    }
    const points = this.#settleSeries(out, inputs);
    const { accounts } = this.#options;
    accounts.refused += Math.min(refused, points);
    accounts.settled += points - Math.min(refused, points);
    this.changed = true;
    if (out.series.count === 0) this.#return(block, out);
    else if (this.#order.isRevoked(block)) this.release([block]);
  }

  #settleSeries(out: BlockOut, inputs: readonly number[]): number {
    const { segment, series, points: all } = out;
    const { whole, leftOut, leftOutPoints } = series;
    const before = series.points;
    const settled = series.settle(inputs);
    const points = before - series.points;
    segment.settledBySeries += points;
    if (whole.isEmpty || out.asWhole || series.count > series.size / 2) {
      for (const at of settled) {
        const { place, bounds } = series.part(at);
        for (let i = 0; i < bounds.length; i += 2) segment.settled.addSeries(place, bounds[i]!, bounds[i + 1]!);
      }
      return points;
    }
    // Most of it is settled: whole stretches with a few gaps say so in less room than many series do.
    out.asWhole = true;
    segment.settledBySeries -= all + leftOutPoints;
    const settledByOthers = [...segment.settled.coveredOf(leftOut)];
    for (const [from, to] of whole.ranges()) segment.settled.addWhole(from, to);
    for (const { place, bounds } of series.parts())
      for (let i = 0; i < bounds.length; i += 2) segment.settled.removeSeries(place, bounds[i]!, bounds[i + 1]!);
    for (const [place, ranges] of leftOut)
      for (const [from, to] of ranges.ranges()) segment.settled.removeSeries(place, from, to);
    for (const [place, from, to] of settledByOthers) segment.settled.addSeries(place, from, to);
    return points;
  }

  #return(id: number, out: BlockOut): void {
    this.#order.forget(id);
    this.#out.delete(id);
    out.segment.blocksOut--;
  }

  #limitOf(segment: Segment): number {
    const { segments } = this.#options;
    return segments[segments.indexOf(segment) + 1]?.first ?? Number.POSITIVE_INFINITY;
  }
}

/** Whether nothing of it is free that these filters leave. */
function isTaken(
  { first, endSequence, taken, numbers }: Segment,
  inputs: TakeRequest["inputs"],
  except: TakeRequest["except"],
): boolean {
  if (!taken.whole.covers(first, endSequence)) return false;
  if (!taken.hasGaps) return true;
  if (!numbers) return false;
  for (const [place] of taken.gaps()) {
    const number = numbers[place];
    if (number === undefined || ((inputs?.has(number) ?? true) && !except?.has(number))) return false;
  }
  return true;
}

function uncover(segment: Segment, place: number, bounds: ArrayLike<number>): void {
  for (let i = 0; i < bounds.length; i += 2) segment.taken.removeSeries(place, bounds[i]!, bounds[i + 1]!);
}
