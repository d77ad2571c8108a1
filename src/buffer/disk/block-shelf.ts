// Hands out blocks and takes back what becomes of them. Knows which points are free, handed out, settled or lost.
import type { Accounts } from "./accounts.ts";
import { cutBlock } from "./block-cut.ts";
import { layOut, type ShelfBlock } from "./block-layout.ts";
import { countDamage, writeOffRest } from "./damage-books.ts";
import { type Disk, diskErrorCode } from "./disk.ts";
import type { InputTable } from "./input-table.ts";
import type { Notes } from "./note.ts";
import type { Checksum } from "./record.ts";
import type { Segment } from "./segment.ts";
import type { SegmentIndex } from "./segment-index.ts";
import { loadIndex, SegmentReader } from "./segment-reader.ts";
import { SeriesOut } from "./series-out.ts";
import { SeriesSorter } from "./series-sorter.ts";
import type { Taken, TakeRequest } from "./taking.ts";

export interface ShelfSettlement {
  readonly block: number;
  readonly inputs: readonly number[];
  readonly refused: number;
}

export interface ShelfOptions {
  readonly disk: Disk;
  readonly folder: string;
  readonly checksum: Checksum;
  readonly inputs: InputTable;
  readonly accounts: Accounts;
  /** Random integers from 0 to below 2^32. */
  readonly random32: () => number;
  /** By sequence number; grows and shrinks as the log does. */
  readonly segments: readonly Segment[];
  readonly note: Notes;
}

interface BlockOut {
  readonly segment: Segment;
  readonly series: SeriesOut;
  /** When it was handed out. */
  readonly points: number;
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

export class BlockShelf {
  readonly #options: ShelfOptions;
  readonly #out = new Map<number, BlockOut>();
  readonly #sorter = new SeriesSorter();
  /** Segments whose index was loaded from disk, the one used last at the end. */
  readonly #indexed: Segment[] = [];
  #nextId: number;
  /** Something was settled or lost since the state was written. */
  changed = false;

  constructor(options: ShelfOptions) {
    this.#options = options;
    // At random, since another buffer that takes the place of this one may have been opened as often.
    this.#nextId = options.accounts.opens * 2 ** 32 + (options.random32() >>> 1);
  }

  take(request: TakeRequest): Taken {
    const { segments } = this.#options;
    const { lane, inputs, from } = request;
    if (inputs && segments.reduce((sum, { taken }) => sum + taken.seriesCount, 0) >= maxSeries) return nothing;
    let reads = 0;
    for (let i = 0; i < segments.length; i++) {
      const segment = segments[lane === "backlog" ? i : segments.length - 1 - i]!;
      if (from !== undefined && (lane === "backlog" ? segment.first < from : segment.first > from)) continue;
      if (segment.points === 0 || segment.taken.whole.covers(segment.first, segment.endSequence)) continue;
      if (inputs && !segment.index && reads++ === maxReads) return { block: undefined, resumeAt: segment.first };
      try {
        const block = this.#takeFrom(segment, request);
        if (block) return { block, resumeAt: undefined };
      } catch (error) {
        // A segment that cannot be read now keeps nothing else back.
        if (diskErrorCode(error) === "") throw error;
        this.#options.note(
          "error",
          { part: "buffer", segment: segment.name, err: String(error) },
          "a segment cannot be read",
        );
      }
    }
    return nothing;
  }

  settle(done: readonly ShelfSettlement[]): void {
    for (const { block, inputs, refused } of done) {
      const out = this.#out.get(block);
      // Settled before, or its segment was dropped meanwhile and counted as that.
      if (!out) continue;
      const points = this.#settleSeries(out, inputs);
      const { accounts } = this.#options;
      accounts.refused += Math.min(refused, points);
      accounts.settled += points - Math.min(refused, points);
      this.changed = true;
      if (out.series.count === 0) this.#return(block, out);
    }
  }

  release(blocks: Iterable<number>): void {
    for (const id of blocks) {
      const out = this.#out.get(id);
      if (!out) continue;
      const { segment, series } = out;
      const { whole } = series;
      if (whole.isEmpty) for (const { place, bounds } of series.parts()) uncover(segment, place, bounds);
      else {
        for (let i = 0; i < whole.bounds.length; i += 2)
          segment.taken.whole.remove(whole.bounds[i]!, whole.bounds[i + 1]!);
        // What was settled of it already is settled.
        for (const [place, ranges] of segment.settled.series())
          for (let i = 0; i < ranges.bounds.length; i += 2)
            segment.taken.addSeries(place, ranges.bounds[i]!, ranges.bounds[i + 1]!);
      }
      this.#return(id, out);
    }
  }

  releaseAll(): void {
    this.release([...this.#out.keys()]);
  }

  /** The segment is gone: what is out of it can no longer be settled. */
  forget(segment: Segment): void {
    for (const [id, out] of this.#out) if (out.segment === segment) this.#out.delete(id);
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
    for (const damage of index.damage) if (countDamage(this.#options, segment, damage)) this.changed = true;
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

  #takeFrom(segment: Segment, { lane, maxPoints, inputs }: TakeRequest): ShelfBlock | undefined {
    const { disk, checksum } = this.#options;
    const index = this.index(segment);
    const numbers = index.dictionary.map((name) =>
      name === undefined ? nameless : this.#options.inputs.numberOf(name),
    );
    if (inputs && !numbers.some((number) => inputs.has(number))) return undefined;
    // Where names may be lost, series are looked at one by one.
    const isNamed = (place: number) => (numbers[place] ?? nameless) !== nameless;
    const careful = index.damage.length > 0 ? isNamed : undefined;
    const wanted = inputs ? (place: number) => inputs.has(numbers[place] ?? nameless) : careful;
    using reader = new SegmentReader(disk, segment, index, lane === "backlog", checksum);
    const onDamage = (record: number) => {
      const from = index.sequences[record]!;
      const to = from + index.points[record]!;
      const lost = { from, to, earliest: index.earliest[record], latest: index.latest[record] };
      if (countDamage(this.#options, segment, lost)) this.changed = true;
    };
    const cut = cutBlock(segment, index, reader, { lane, maxPoints, wanted, onDamage });
    if (!cut) {
      if (!inputs && writeOffRest(this.#options, segment)) this.changed = true;
      return undefined;
    }
    for (let i = 0; i < cut.whole.bounds.length; i += 2)
      segment.taken.addWhole(cut.whole.bounds[i]!, cut.whole.bounds[i + 1]!);
    if (cut.whole.isEmpty)
      for (const { place, ranges } of cut.series.values())
        for (let i = 0; i < ranges.bounds.length; i += 2)
          segment.taken.addSeries(place, ranges.bounds[i]!, ranges.bounds[i + 1]!);
    segment.blocksOut++;
    const id = this.#nextId++;
    const { block, places } = layOut(id, cut, numbers, this.#sorter);
    const series = new SeriesOut(cut, block.inputs, places, block.valueStarts);
    this.#out.set(id, { segment, series, points: cut.points });
    return block;
  }

  #settleSeries({ segment, series, points: all }: BlockOut, inputs: readonly number[]): number {
    const before = series.points;
    const settled = series.settle(inputs);
    const points = before - series.points;
    const { whole } = series;
    if (whole.isEmpty || series.count > 0) {
      for (const { place, bounds } of settled)
        for (let i = 0; i < bounds.length; i += 2) segment.settled.addSeries(place, bounds[i]!, bounds[i + 1]!);
      segment.settledBySeries += points;
      return points;
    }
    // All of these records is settled: one stretch says so better than many series do.
    segment.settledBySeries -= all - before;
    for (let i = 0; i < whole.bounds.length; i += 2) segment.settled.addWhole(whole.bounds[i]!, whole.bounds[i + 1]!);
    return points;
  }

  #return(id: number, out: BlockOut): void {
    this.#out.delete(id);
    out.segment.blocksOut--;
  }

  #limitOf(segment: Segment): number {
    const { segments } = this.#options;
    return segments[segments.indexOf(segment) + 1]?.first ?? Number.POSITIVE_INFINITY;
  }
}

function uncover(segment: Segment, place: number, bounds: ArrayLike<number>): void {
  for (let i = 0; i < bounds.length; i += 2) segment.taken.removeSeries(place, bounds[i]!, bounds[i + 1]!);
}
