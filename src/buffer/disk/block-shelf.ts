// Hands out blocks and takes back what becomes of them. Knows which points are free, handed out, settled or lost.
import type { Lane } from "../../core/buffer.ts";
import type { Accounts } from "./accounts.ts";
import { type Cut, type CutSeries, cutBlock } from "./block-cut.ts";
import { type Disk, diskErrorCode } from "./disk.ts";
import type { InputTable } from "./input-table.ts";
import type { Notes } from "./note.ts";
import { keepAside } from "./quarantine.ts";
import type { Checksum } from "./record.ts";
import type { Segment } from "./segment.ts";
import type { SegmentIndex } from "./segment-index.ts";
import { loadIndex, SegmentReader } from "./segment-reader.ts";
import { SeriesSorter } from "./series-sorter.ts";

/** A block as it travels between the threads: columns behind each other; series that share their times share a column. */
export interface ShelfBlock {
  readonly id: number;
  /** Numbers of the inputs. */
  readonly inputs: Uint32Array<ArrayBuffer>;
  /** Where the times and the values of each series begin. `valueStarts` has one entry more. */
  readonly timeStarts: Uint32Array<ArrayBuffer>;
  readonly valueStarts: Uint32Array<ArrayBuffer>;
  readonly times: Float64Array<ArrayBuffer>;
  readonly values: Float64Array<ArrayBuffer>;
}

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
  /** By sequence number; grows and shrinks as the log does. */
  readonly segments: readonly Segment[];
  readonly note: Notes;
}

interface BlockOut {
  readonly segment: Segment;
  readonly cut: Pick<Cut, "whole" | "series" | "points">;
}

/** Indices kept of segments that are not being written. */
const indicesKept = 2;
/** Stands for an Input ID of which every copy is damaged. */
const nameless = -1;
/** Points that a block may gather memory for and keep it. */
const keptPoints = 65_536;

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
    this.#nextId = options.accounts.opens * 2 ** 32;
  }

  /** Undefined: there is nothing free. */
  take(lane: Lane, maxPoints: number, inputs: ReadonlySet<number> | undefined): ShelfBlock | undefined {
    const { segments } = this.#options;
    for (let i = 0; i < segments.length; i++) {
      const segment = segments[lane === "backlog" ? i : segments.length - 1 - i]!;
      if (segment.points === 0 || segment.taken.whole.covers(segment.first, segment.endSequence)) continue;
      try {
        const block = this.#takeFrom(segment, lane, maxPoints, inputs);
        if (block) return block;
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
    return undefined;
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
      if (out.cut.series.size === 0) this.#return(block, out);
    }
  }

  release(blocks: Iterable<number>): void {
    for (const id of blocks) {
      const out = this.#out.get(id);
      if (!out) continue;
      const { segment, cut } = out;
      if (cut.whole.isEmpty)
        for (const series of cut.series.values()) uncover(segment, series.place, series.ranges.bounds);
      else {
        for (let i = 0; i < cut.whole.bounds.length; i += 2)
          segment.taken.whole.remove(cut.whole.bounds[i]!, cut.whole.bounds[i + 1]!);
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
    for (const { from, to, earliest, latest } of index.damage) this.#lose(segment, from, to, earliest, latest);
    this.keepIndex(segment);
    return index;
  }

  /** The index of a segment that is not written any more: one of the few that are kept. */
  keepIndex(segment: Segment): void {
    this.#indexed.push(segment);
    while (this.#indexed.length > indicesKept) {
      const oldest = this.#indexed.shift();
      if (oldest) oldest.index = undefined;
    }
  }

  #takeFrom(
    segment: Segment,
    lane: Lane,
    maxPoints: number,
    inputs: ReadonlySet<number> | undefined,
  ): ShelfBlock | undefined {
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
      this.#lose(segment, from, from + index.points[record]!, index.earliest[record], index.latest[record]);
    };
    const cut = cutBlock(segment, index, reader, { lane, maxPoints, wanted, onDamage });
    if (!cut) {
      if (!inputs) this.#writeOff(segment);
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
    this.#out.set(id, { segment, cut: { whole: cut.whole, series: byNumber(cut, numbers), points: cut.points } });
    return this.#sorted(id, cut, numbers);
  }

  #sorted(id: number, cut: Cut, numbers: readonly number[]): ShelfBlock {
    const { places, times, values, points } = cut;
    const columns = this.#sorter.sort(places, times, values, 0, points);
    const count = columns.seriesCount;
    const timeStarts = new Uint32Array(count);
    const packed = new Float64Array(points);
    let used = 0;
    for (let i = 0; i < count; i++) {
      const [start, end] = [columns.starts[i]!, columns.starts[i + 1]!];
      const shared = i > 0 ? timeStarts[i - 1]! : 0;
      if (i > 0 && used - shared === end - start && equalColumns(packed, shared, columns.times, start, end)) {
        timeStarts[i] = shared;
        continue;
      }
      timeStarts[i] = used;
      packed.set(columns.times.subarray(start, end), used);
      used += end - start;
    }
    const block = {
      id,
      inputs: Uint32Array.from(columns.series.subarray(0, count), (place) => numbers[place]!),
      timeStarts,
      valueStarts: columns.starts.slice(0, count + 1),
      times: packed.slice(0, used),
      values: columns.values.slice(0, points),
    };
    this.#sorter.shrink(keptPoints);
    return block;
  }

  #settleSeries({ segment, cut }: BlockOut, inputs: readonly number[]): number {
    const settled: CutSeries[] = [];
    const settledBefore = cut.points - [...cut.series.values()].reduce((sum, series) => sum + series.points, 0);
    for (const input of inputs) {
      const series = cut.series.get(input);
      if (!series) continue;
      cut.series.delete(input);
      settled.push(series);
    }
    const points = settled.reduce((sum, series) => sum + series.points, 0);
    if (cut.whole.isEmpty || cut.series.size > 0) {
      for (const { place, ranges } of settled)
        for (let i = 0; i < ranges.bounds.length; i += 2)
          segment.settled.addSeries(place, ranges.bounds[i]!, ranges.bounds[i + 1]!);
      segment.settledBySeries += points;
      return points;
    }
    // All of these records is settled: one stretch says so better than many series do.
    segment.settledBySeries -= settledBefore;
    for (let i = 0; i < cut.whole.bounds.length; i += 2)
      segment.settled.addWhole(cut.whole.bounds[i]!, cut.whole.bounds[i + 1]!);
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

  /** Counts points that cannot be read, once: from now on they are done with. */
  #lose(segment: Segment, from: number, to: number, earliest: number | undefined, latest: number | undefined): void {
    // Where single series of the stretch are settled, how many of its points are lost shows when all else is settled.
    if (segment.settled.touchesSeries(from, to) || segment.taken.touchesSeries(from, to)) return;
    const points = to - from - segment.settled.whole.countIn(from, to);
    if (points <= 0) return;
    const { accounts, note } = this.#options;
    segment.settled.addWhole(from, to);
    segment.taken.addWhole(from, to);
    accounts.losses.add("damaged", points, earliest, latest);
    this.changed = true;
    this.#setAside(segment, from);
    note("error", { part: "buffer", segment: segment.name, points }, "points are damaged on disk and were set aside");
  }

  #setAside(segment: Segment, sequence: number): void {
    const damage = segment.index?.damage.find(({ from }) => from === sequence);
    if (!damage) return;
    const { disk, folder } = this.#options;
    try {
      const file = disk.open(segment.path, "read");
      try {
        const bytes = new Uint8Array(Math.min(damage.bytes, 2 ** 19));
        keepAside(
          disk,
          folder,
          `${segment.name}-${damage.offset}.bin`,
          bytes.subarray(0, file.read(bytes, damage.offset)),
        );
      } finally {
        file.close();
      }
    } catch {
      // The copy is a courtesy.
    }
  }

  /** Nothing in a sealed segment is free and nothing of it is out: what is left of it cannot be read. */
  #writeOff(segment: Segment): void {
    if (!segment.sealed || segment.blocksOut > 0 || segment.unsettledPoints <= 0) return;
    const { accounts, note } = this.#options;
    const points = segment.unsettledPoints;
    accounts.losses.add("damaged", points, segment.earliest, segment.latest);
    segment.settleAll();
    this.changed = true;
    note("error", { part: "buffer", segment: segment.name, points }, "points are damaged on disk and were set aside");
  }
}

function byNumber(cut: Cut, numbers: readonly number[]): Cut["series"] {
  const series: Cut["series"] = new Map();
  for (const part of cut.series.values()) series.set(numbers[part.place]!, part);
  return series;
}

function uncover(segment: Segment, place: number, bounds: readonly number[]): void {
  for (let i = 0; i < bounds.length; i += 2) segment.taken.removeSeries(place, bounds[i]!, bounds[i + 1]!);
}

function equalColumns(a: Float64Array, at: number, b: Float64Array, start: number, end: number): boolean {
  for (let i = start; i < end; i++) if (a[at + i - start] !== b[i]) return false;
  return true;
}
