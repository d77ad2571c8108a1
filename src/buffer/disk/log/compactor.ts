// When an outage lasts, rewrites sealed segments densely: many records become one, each series one long column, whose bytes
// are sorted into streams that are squeezed with zstd. What is settled is left out. Works in small steps, so that commits never wait long.
//
// The new segment is written to a file aside and synced; then the state is written, so that the accounts know of all that
// is left out; then it takes the name of the old one, and the folder is synced. A crash at any point leaves one of the
// two under that name. What the state says of the old one does not hold for the new one, whose generation is another.
import { constants, zstdCompressSync } from "node:zlib";
import { attempt } from "../../../lib/attempt.ts";
import { ByteWriter } from "../files/bytes.ts";
import { type DiskFile, writeFully } from "../files/disk.ts";
import { maxPayloadBytes } from "../format/record.ts";
import { SegmentEncoder } from "../format/segment-encoder.ts";
import { type SegmentHeader, writeSegmentHeader } from "../format/segment-header.ts";
import { SegmentIndex } from "../format/segment-index.ts";
import { SeriesSorter } from "../format/series-sorter.ts";
import type { Moment } from "../segments/environment.ts";
import { sealOf, writeSeal } from "../segments/seal.ts";
import type { Segment } from "../segments/segment.ts";
import { SegmentReader } from "../segments/segment-reader.ts";
import type { UpkeepParts } from "./keeper.ts";

/** What is under way lies in this file; left behind by a crash it is overwritten by the next one. */
export const compactionFile = "compaction.tmp";
/** A segment is left alone for so long after its last point: most outages are shorter. */
const coldAfterMs = 60_000;
/** Points of one record, at most. More squeeze little better, and cost more when they are damaged. */
const slabPoints = 65_536;
/** What the streams of cold segments are squeezed with. In short ones a higher level finds more, and costs little. */
export const coldCompress = (stream: Uint8Array) =>
  zstdCompressSync(stream, { params: { [constants.ZSTD_c_compressionLevel]: stream.length < 16_384 ? 6 : 3 } });

export interface CompactorOptions extends UpkeepParts {
  /** Points of one record, unless a single record of the hot segment has more. Undefined: `slabPoints`. */
  readonly coldPoints: number | undefined;
}

interface Job {
  readonly segment: Segment;
  readonly index: SegmentIndex;
  readonly unsettled: number;
  readonly header: SegmentHeader;
  readonly file: DiskFile;
  readonly encoder: SegmentEncoder;
  readonly target: SegmentIndex;
  nextRecord: number;
}

export class Compactor {
  readonly #options: CompactorOptions;
  readonly #scratch = { sorter: new SeriesSorter(), out: new ByteWriter() };
  /** Segments that are not worth another try: they are read just now, or the disk refused. By when to forget that. */
  readonly #skipped = new Map<Segment, number>();
  #job: Job | undefined;

  constructor(options: CompactorOptions) {
    this.#options = options;
  }

  /** Does a little, some 10 ms of work. Says whether there is more to do. Never throws. */
  step(now: Moment): boolean {
    try {
      this.#job ??= this.#start(now);
      if (!this.#job) return false;
      if (!this.#isUndisturbed(this.#job)) {
        this.#skip(this.#job, now);
        return true;
      }
      if (this.#job.nextRecord < this.#job.index.sequences.length) this.#rewriteSlab(this.#job);
      else this.#finish(this.#job, now);
      return true;
    } catch (error) {
      this.#options.note("warn", { err: String(error) }, "a segment could not be compacted");
      if (this.#job) this.#skip(this.#job, now);
      return false;
    }
  }

  /** Gives up what is under way. */
  stop(): void {
    const job = this.#job;
    this.#job = undefined;
    if (!job) return;
    // A file that stays is overwritten by the next compaction.
    attempt(() => job.file.close());
    attempt(() => this.#options.disk.remove(this.#path));
  }

  get #path(): string {
    return `${this.#options.folder}/${compactionFile}`;
  }

  #start(now: Moment): Job | undefined {
    const { accounts, checksum, disk, folder, random32, segments, shelf, keeper } = this.#options;
    const uptime = keeper.uptime(now);
    for (const [segment, until] of this.#skipped) if (uptime > until) this.#skipped.delete(segment);
    const segment = segments.find(
      (each) =>
        each.sealed &&
        each.headerKnown &&
        !each.needsMending &&
        each.header.kind === "hot" &&
        each.unsettledPoints > 0 &&
        each.blocksOut === 0 &&
        uptime - each.lastUptime > coldAfterMs &&
        !this.#skipped.has(each),
    );
    if (!segment) return undefined;
    const index = shelf.index(segment);
    // Damaged records stay unchanged: they are counted by their sequence numbers, and remain available for inspection.
    const { first, endSequence } = segment;
    if (index.damage.length > 0 || accounts.removed.within(first, endSequence).length > 0) {
      this.#skipped.set(segment, Number.POSITIVE_INFINITY);
      return undefined;
    }
    if (disk.list(folder).includes(compactionFile)) disk.remove(this.#path);
    const salt = random32();
    const header = { ...segment.header, kind: "cold", salt, generation: segment.header.generation + 1 } as const;
    const file = disk.open(this.#path, "create");
    const encoder = new SegmentEncoder({ salt, checksum, compress: coldCompress }, this.#scratch);
    const target = new SegmentIndex(segment.first, salt);
    writeFully(file, writeSegmentHeader(header), 0);
    return { segment, index, unsettled: segment.unsettledPoints, header, file, encoder, target, nextRecord: 0 };
  }

  #isUndisturbed({ segment, unsettled }: Job): boolean {
    const isThere = this.#options.segments.includes(segment);
    return isThere && segment.blocksOut === 0 && segment.unsettledPoints === unsettled;
  }

  #skip(job: Job, now: Moment): void {
    this.#skipped.set(job.segment, this.#options.keeper.uptime(now) + coldAfterMs);
    this.stop();
  }

  #rewriteSlab(job: Job): void {
    const { inputs } = this.#options;
    const { segment, index, target, encoder } = job;
    const first = job.nextRecord;
    let end = first;
    let room = Math.min(slabPoints, this.#options.coldPoints ?? slabPoints);
    while (end < index.sequences.length && (end === first || index.points[end]! <= room)) room -= index.points[end++]!;
    const points = this.#gather(segment, index, first, end);
    job.nextRecord = end;
    // Sorting keeps the order of equal times; a record with any late point counts as late.
    const late = index.late.slice(first, end).includes(true);
    for (let from = 0, to = points.count; from < points.count; ) {
      encoder.out.cut();
      const known = encoder.names.length;
      const record = encoder.encode(points, { from, to, late }, target.endSequence, inputs);
      if (record.bytes > maxPayloadBytes) {
        // Points of many series, at times of their own and with noisy values: the same in halves.
        encoder.forget(known, inputs);
        to = from + Math.ceil((to - from) / 2);
        continue;
      }
      writeFully(job.file, encoder.out.written(), target.endOffset);
      target.add(target.endOffset + record.offset, record);
      target.endOffset += encoder.out.length;
      [from, to] = [to, points.count];
    }
  }

  #gather(segment: Segment, index: SegmentIndex, first: number, end: number) {
    const { checksum, disk, inputs } = this.#options;
    let room = 0;
    for (let i = first; i < end; i++) room += index.points[i]!;
    const points = { inputs: new Uint32Array(room), times: new Float64Array(room), values: new Float64Array(room) };
    const numbers = index.dictionary.map((name) => (name === undefined ? -1 : inputs.numberOf(name)));
    let count = 0;
    using reader = new SegmentReader(disk, segment, index, true, checksum);
    for (let i = first; i < end; i++) {
      const [from, to] = index.rangeOf(i);
      if (segment.settled.coversAll(from, to)) continue;
      const mayBeSettled = segment.settled.hasSeries;
      const isRead = reader.visit(i, (place, time, value) => {
        const number = numbers[place] ?? -1;
        if (number < 0) throw new Error(`a name in ${segment.name} is damaged`);
        if (mayBeSettled && segment.settled.covers(place, from, to)) return;
        points.inputs[count] = number;
        points.times[count] = time;
        points.values[count] = value;
        count++;
      });
      if (!isRead) throw new Error(`a record of ${segment.name} is damaged`);
    }
    return { ...points, count };
  }

  #finish(job: Job, now: Moment): void {
    const { accounts, checksum, disk, folder, keeper, shelf } = this.#options;
    const { segment, target, encoder, file, header } = job;
    if (target.endSequence - segment.first !== job.unsettled)
      throw new Error(`${segment.name} holds other points than are accounted for`);
    const { out } = encoder;
    out.cut();
    encoder.writeDictionary(0, target.endSequence);
    const { endSequence, earliestTime: earliest = Number.NaN, latestTime: latest = Number.NaN } = target;
    const totals = { ...sealOf(segment), endSequence, earliest, latest };
    writeSeal(out, totals, header.salt, checksum);
    writeFully(file, out.written(), target.endOffset);
    target.endOffset += out.length;
    file.sync();
    // All that was left out has to be in the accounts before it is gone.
    if (!keeper.persist(now)) throw new Error("the state could not be written");
    disk.rename(this.#path, segment.path);
    this.#job = undefined;
    for (const name of encoder.names) target.dictionary.push(name);
    target.sealed = true;
    const { endSequence: endBefore } = segment;
    segment.replace(header, target);
    accounts.removed.add(segment.endSequence, endBefore);
    shelf.keepIndex(segment);
    keeper.changed = true;
    file.close();
    disk.syncFolder(folder);
  }
}
