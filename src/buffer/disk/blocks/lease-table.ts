// The lease table: leases blocks, settles them and releases them. Tracks the state of every point.

import type { LossReason } from "../counters/point-counters.ts";
import { diskErrorCode } from "../files/disk.ts";
import { SeriesSorter } from "../format/columns.ts";
import type { SegmentIndex } from "../format/segment-file.ts";
import { type BlockSettlement, SettlementOrder } from "../segments/late-points.ts";
import { IndexCache, type LogParts, type Segment, SegmentReader } from "../segments/segment.ts";
import { cutBlock, layOut, type Taken, type TakeRequest } from "./block-cut.ts";
import { DroppedBlocks, Lease } from "./lease.ts";
import { countDamage, type SegmentLoss, segmentLoss, wholeLoss, writeOffRest } from "./segment-losses.ts";

const nothing: Taken = { block: undefined, resumeAt: undefined };
/** One request for specific series scans at most this many segments whose index is not cached. */
const maxReads = 2;
/**
 * Maximum series tracked separately as taken, in all segments: about 500 bytes each. Above it, requests for specific
 * series find nothing until segments are settled.
 */
const maxSeries = 32_768;
/** Number of a series whose Input ID is damaged in every copy. */
const nameless = -1;
const noneLate: ReadonlySet<number> = new Set();

export class LeaseTable {
  readonly #options: LogParts;
  readonly #leased = new Map<number, Lease>();
  readonly dropped: DroppedBlocks;
  readonly #order = new SettlementOrder(this.#leased, {
    settle: (lease, { block, inputs, refused }) => {
      if (!lease) return this.dropped.settle(block, inputs, refused);
      this.#options.counters.settle(lease.settle(inputs), refused);
      lease.segment.joinSettled();
      if (lease.count === 0) lease.segment.blocksOut--;
    },
    release: (lease, block) => {
      if (!lease) return this.dropped.release(block);
      lease.release();
      lease.segment.blocksOut--;
    },
  });
  readonly #unread = new UnreadSegments();
  readonly #sorter = new SeriesSorter();
  readonly #indices: IndexCache;
  readonly #numbers = new WeakMap<SegmentIndex, number[]>();
  #nextId: number;

  constructor(options: LogParts) {
    this.#options = options;
    this.#indices = new IndexCache(options);
    this.dropped = new DroppedBlocks(options.counters);
    // Random: a different buffer that replaces this one may have the same `opens` count.
    this.#nextId = options.counters.opens * 2 ** 32 + (options.random32() >>> 1);
  }

  /** Whether the last read of any segment failed. */
  get isUnread(): boolean {
    return !this.#unread.isEmpty;
  }

  take(request: TakeRequest): Taken {
    const { segments } = this.#options;
    const { lane, inputs, except, from } = request;
    if (inputs && segments.reduce((sum, { taken }) => sum + taken.series.size, 0) >= maxSeries) return nothing;
    let reads = 0;
    for (let i = 0; i < segments.length; i++) {
      const segment = segments[lane === "backlog" ? i : segments.length - 1 - i]!;
      if (from !== undefined && (lane === "backlog" ? segment.first < from : segment.first > from)) continue;
      if (segment.points === 0 || isTaken(segment, inputs, except)) continue;
      if (inputs && !segment.index && reads++ === maxReads) return { block: undefined, resumeAt: segment.first };
      try {
        const block = this.#takeFrom(segment, request);
        this.#unread.delete(segment);
        if (block) return { block, resumeAt: undefined };
      } catch (error) {
        // An unreadable segment delays only late points of later segments, which may replace points in it.
        if (diskErrorCode(error) === "") throw error;
        this.#unread.add(segment);
        this.#options.note("error", { segment: segment.name, err: String(error) }, "a segment cannot be read");
      }
    }
    return nothing;
  }

  /** True: points of dropped segments were settled. Sync the state, or they count as lost after a power cut. */
  settle(done: readonly BlockSettlement[]): boolean {
    const droppedBefore = this.dropped.points;
    this.#order.settle(done);
    return this.dropped.points < droppedBefore;
  }

  release(blocks: Iterable<number>): void {
    this.#order.release(blocks);
  }

  releaseAll(): void {
    this.release([...this.#leased.keys()]);
    this.dropped.releaseAll();
  }

  /** Drops the segment and returns its loss, without leased points: these are lost only if their block is released. */
  drop(segment: Segment, reason: LossReason): SegmentLoss {
    const blocks = new Map<number, Lease>();
    for (const [id, lease] of this.#leased) {
      if (lease.segment !== segment) continue;
      // Apply its waiting settlements: the points that they replace are dropped too, or were delivered before.
      this.#order.settleWaiting(id);
      if (this.#leased.has(id)) blocks.set(id, lease);
    }
    const loss = this.#lossOf(segment, blocks);
    const { first, endSequence: end } = segment;
    for (const [id, lease] of blocks)
      this.dropped.add(id, { reason, lease, times: loss.leased.get(id) ?? new Map(), first, end });
    segment.settleAll();
    this.forget(segment);
    return loss;
  }

  #lossOf(segment: Segment, blocks: ReadonlyMap<number, Lease>): SegmentLoss {
    let leasedPoints = 0;
    for (const { points } of blocks.values()) leasedPoints += points;
    if (segment.taken.isEmpty) return wholeLoss(segment, 0);
    try {
      const { disk } = this.#options;
      const index = this.index(segment);
      using reader = new SegmentReader(disk, segment, index, true);
      return segmentLoss(segment, index, reader, blocks);
    } catch {
      // Without a readable file, the counters are the only source.
      return wholeLoss(segment, leasedPoints);
    }
  }

  /** Forgets a removed segment: its blocks can no longer be settled. */
  forget(segment: Segment): void {
    for (const [id, lease] of this.#leased) if (lease.segment === segment) this.#order.forget(id);
    this.#unread.forget(segment);
    this.#order.settleReady();
    this.#indices.forget(segment);
  }

  /** The segment's index. Scans the file if it is not cached, and counts damaged points. */
  index(segment: Segment): SegmentIndex {
    return this.#indices.of(segment, (index) => countDamage(this.#options, segment, index));
  }

  keepIndex(segment: Segment): void {
    this.#indices.keep(segment);
  }

  /** Input numbers by place in the dictionary, which grows, and whose damaged names may be found in other copies. */
  #numbersOf(index: SegmentIndex): readonly number[] {
    const numbers = this.#numbers.get(index) ?? [];
    this.#numbers.set(index, numbers);
    for (let place = 0; place < index.dictionary.length; place++) {
      if ((numbers[place] ?? nameless) !== nameless) continue;
      const name = index.dictionary[place];
      numbers[place] = name === undefined ? nameless : this.#options.inputs.numberOf(name);
    }
    return numbers;
  }

  #takeFrom(segment: Segment, { lane, maxPoints, enough = maxPoints, inputs, except }: TakeRequest) {
    const { disk } = this.#options;
    const index = this.index(segment);
    // Damaged ranges that were leased during earlier calls may be free now.
    if (index.damage.length > 0) countDamage(this.#options, segment, index);
    const numbers = this.#numbersOf(index);
    segment.numbers = segment.taken.gaps.size > 0 || except ? numbers : undefined;
    if (inputs && !numbers.some((number) => inputs.has(number))) return undefined;
    const isNamed = (place: number) => (numbers[place] ?? nameless) !== nameless;
    const isDamaged = index.damage.length > 0;
    const leavesOut = except !== undefined && numbers.some((number) => except.has(number));
    const wanted = (place: number) => {
      const number = numbers[place] ?? nameless;
      return (!isDamaged || number !== nameless) && (inputs?.has(number) ?? true) && !except?.has(number);
    };
    using reader = new SegmentReader(disk, segment, index, lane === "backlog");
    const onDamage = (record: number) => {
      const [from, to] = index.rangeOf(record);
      const found = { from, to, earliest: index.earliest[record], latest: index.latest[record] };
      countDamage(this.#options, segment, index, [found]);
    };
    let withholds = false;
    if (lane === "backlog" && !inputs) this.#unread.restart(segment);
    // Segments whose requested points are all taken do not delay late points.
    const mayHold = (each: Segment) => !isTaken(each, inputs, except);
    const withheld = (record: number) => {
      const isWithheld =
        index.late[record] === true && (lane === "live" || this.#unread.withholds(segment, index, record, mayHold));
      withholds ||= isWithheld;
      return isWithheld;
    };
    const cut = cutBlock(segment, index, reader, {
      lane,
      maxPoints,
      enough,
      wanted: inputs || leavesOut || isDamaged ? wanted : undefined,
      // With damaged names, each series is checked separately.
      bySeries: inputs !== undefined || isDamaged,
      isNamed,
      withheld,
      onDamage,
    });
    if (!cut) {
      if (!inputs && !leavesOut && !withholds) writeOffRest(this.#options, segment);
      return undefined;
    }
    segment.blocksOut++;
    const id = this.#nextId++;
    const { block, places } = layOut(id, cut, numbers, this.#sorter);
    const late = block.late.includes(1) ? new Set(block.inputs.filter((_, i) => block.late[i] === 1)) : noneLate;
    this.#leased.set(id, new Lease(segment, cut, { ...block, places, late }));
    return block;
  }
}

/** Whether the segment has no free points of the requested series. */
function isTaken(
  { first, endSequence, taken, numbers }: Segment,
  inputs: TakeRequest["inputs"],
  except: TakeRequest["except"],
): boolean {
  if (!taken.whole.covers(first, endSequence)) return false;
  if (taken.gaps.size === 0) return true;
  if (!numbers) return false;
  for (const [place] of taken.gaps) {
    const number = numbers[place];
    if (number === undefined || ((inputs?.has(number) ?? true) && !except?.has(number))) return false;
  }
  return true;
}

/**
 * Segments whose last read failed. Late records of later segments wait for them, since they may replace points in them.
 * All other points are leased as usual.
 */
class UnreadSegments {
  readonly #unread = new Set<Segment>();
  /** Time ranges of waiting late records. Later late records that overlap them wait too. */
  readonly #withheld = new Map<Segment, { readonly earliest: number; readonly latest: number }>();

  get isEmpty(): boolean {
    return this.#unread.size === 0;
  }

  add(segment: Segment): void {
    this.#unread.add(segment);
  }

  delete(segment: Segment): void {
    this.#unread.delete(segment);
  }

  forget(segment: Segment): void {
    this.#unread.delete(segment);
    this.#withheld.delete(segment);
  }

  /** Resets the waiting records of the segment before it is scanned again. */
  restart(segment: Segment): void {
    this.#withheld.delete(segment);
  }

  /** Whether a late record must wait. `mayHold`: whether a segment may hold requested points. */
  withholds(segment: Segment, index: SegmentIndex, record: number, mayHold: (segment: Segment) => boolean): boolean {
    const [from, to] = [index.earliest[record]!, index.latest[record]!];
    const touches = ({ earliest = -Infinity, latest = Infinity }: Pick<Segment, "earliest" | "latest">) =>
      from <= latest && to >= earliest;
    if (this.isEmpty) this.#withheld.clear();
    const waits =
      [...this.#unread].some((each) => each.first < segment.first && touches(each) && mayHold(each)) ||
      [...this.#withheld].some(([{ first }, times]) => first <= segment.first && touches(times));
    if (!waits) return false;
    const before = this.#withheld.get(segment) ?? { earliest: from, latest: to };
    const [earliest, latest] = [Math.min(before.earliest, from), Math.max(before.latest, to)];
    this.#withheld.set(segment, { earliest, latest });
    return true;
  }
}
