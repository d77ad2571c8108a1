// The lease table: leases blocks, and takes their settlement or release. It knows which points are free, leased, settled or lost.
import type { LossReason } from "../accounts/loss-ledger.ts";
import { diskErrorCode } from "../files/disk.ts";
import type { SegmentIndex } from "../format/segment-index.ts";
import { SeriesSorter } from "../format/series-sorter.ts";
import type { LogParts } from "../segments/environment.ts";
import type { Segment } from "../segments/segment.ts";
import { SegmentReader } from "../segments/segment-reader.ts";
import { cutBlock } from "./block-cut.ts";
import { layOut, type Taken, type TakeRequest } from "./block-layout.ts";
import { countDamage, type DamagedStretch, writeOffRest } from "./damage-books.ts";
import { DroppedBlocks, type SegmentLoss, segmentLoss, wholeLoss } from "./dropped-blocks.ts";
import { IndexCache } from "./index-cache.ts";
import { Lease } from "./lease.ts";
import { SeriesOut } from "./series-out.ts";
import { type BlockSettlement, SettlementOrder } from "./settlement-order.ts";
import { UnreadSegments } from "./unread-segments.ts";

const nothing: Taken = { block: undefined, resumeAt: undefined };
/** Segments that are read from end to end in one request, to find the series that are asked for. */
const maxReads = 2;
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
  readonly #out = new Map<number, Lease>();
  /** Leased when their segments were dropped. */
  readonly dropped: DroppedBlocks;
  readonly #order = new SettlementOrder(this.#out);
  readonly #unread = new UnreadSegments();
  readonly #sorter = new SeriesSorter();
  readonly #indices: IndexCache;
  readonly #numbers = new WeakMap<SegmentIndex, number[]>();
  #nextId: number;
  /** Something was settled or lost since the state was written. */
  changed = false;

  constructor(options: LogParts) {
    this.#options = options;
    this.#indices = new IndexCache(options);
    this.dropped = new DroppedBlocks(options.accounts);
    // At random, since another buffer that takes the place of this one may have been opened as often.
    this.#nextId = options.accounts.opens * 2 ** 32 + (options.random32() >>> 1);
  }

  /** Whether there is a segment that the disk did not give when it was last read. */
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
        // A segment that cannot be read now keeps nothing else back but late points, which may replace points in it.
        if (diskErrorCode(error) === "") throw error;
        this.#unread.add(segment);
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
      out.release();
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
    this.#unread.forget(segment);
    this.#settleReady();
    this.#indices.forget(segment);
  }

  /** The segment's index. Scans the file if it is not cached, and counts what is damaged. */
  index(segment: Segment): SegmentIndex {
    return this.#indices.of(segment, (index) => this.#countDamage(segment, index));
  }

  /** The index of a segment that is not written any more: one of the few that are kept. */
  keepIndex(segment: Segment): void {
    this.#indices.keep(segment);
  }

  #countDamage(segment: Segment, index: SegmentIndex, found: readonly DamagedStretch[] = []): void {
    if (countDamage(this.#options, segment, index, found)) this.changed = true;
  }

  /** Numbers of the inputs by place in the dictionary, which grows, and in which names that were damaged may come again. */
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
    const { disk, checksum } = this.#options;
    const index = this.index(segment);
    // What was leased before may have come back.
    if (index.damage.length > 0) this.#countDamage(segment, index);
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
    using reader = new SegmentReader(disk, segment, index, lane === "backlog", checksum);
    const onDamage = (record: number) => {
      const [from, to] = index.rangeOf(record);
      this.#countDamage(segment, index, [{ from, to, earliest: index.earliest[record], latest: index.latest[record] }]);
    };
    let withholds = false;
    if (lane === "backlog" && !inputs) this.#unread.restart(segment);
    // Of segments where all that is asked for is taken, none is in the way.
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
    segment.blocksOut++;
    const id = this.#nextId++;
    const { block, places } = layOut(id, cut, numbers, this.#sorter);
    const series = new SeriesOut(cut, block.inputs, places, block.valueStarts);
    const late = block.late.includes(1) ? new Set(block.inputs.filter((_, i) => block.late[i] === 1)) : noneLate;
    this.#out.set(id, new Lease(segment, series, late));
    return block;
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
    this.#options.accounts.settle(out.settle(inputs), refused);
    out.segment.joinSettled();
    this.changed = true;
    if (out.series.count === 0) this.#return(block, out);
    else if (this.#order.isRevoked(block)) this.release([block]);
  }

  #return(id: number, out: Lease): void {
    this.#order.forget(id);
    this.#out.delete(id);
    out.segment.blocksOut--;
  }
}

/** Whether nothing of it is free that these filters leave. */
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
