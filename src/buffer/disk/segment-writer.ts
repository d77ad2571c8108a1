// Writes the active segment: each group of points in one write and one sync, with the Input IDs it needs.
//
// The file has its full length from the start, so that a commit changes no metadata (a quarter of the wear). A new
// Input ID is written before the records that use it and again behind them, and all of them once more when the segment
// is sealed: one damaged place never makes other records unreadable.
import type { InputId } from "../../core/point.ts";
import type { ByteWriter } from "./bytes.ts";
import { type SortedColumns, writeColumns } from "./columns.ts";
import { type Disk, type DiskFile, writeFully } from "./disk.ts";
import type { InputTable } from "./input-table.ts";
import type { PointColumns } from "./point-columns.ts";
import { type Checksum, recordTypes, writeRecord } from "./record.ts";
import { writeSeal } from "./seal.ts";
import { Segment } from "./segment.ts";
import { type SegmentHeader, segmentHeaderBytes, segmentName, writeSegmentHeader } from "./segment-header.ts";
import { SegmentIndex } from "./segment-index.ts";
import type { SeriesSorter } from "./series-sorter.ts";

/** Points in one record: what one damaged place can cost. */
export const maxRecordPoints = 8_192;
/** Beyond it a group goes on in another write, so that memory stays bounded. */
const maxWriteBytes = 2 ** 20;
const maxDictionaryBytes = 128 * 1_024;

export interface SegmentWriterOptions {
  readonly disk: Disk;
  readonly folder: string;
  /** Length of the file. One record more than fits goes into the next segment. */
  readonly fullBytes: number;
  readonly checksum: Checksum;
}

interface Pending {
  readonly sequence: number;
  readonly points: number;
  readonly from: number;
  readonly to: number;
  readonly offset: number;
}

export class SegmentWriter {
  readonly segment: Segment;
  readonly #options: SegmentWriterOptions;
  readonly #file: DiskFile;
  readonly #index: SegmentIndex;
  readonly #sorter: SeriesSorter;
  readonly #out: ByteWriter;
  /** Place in the dictionary by number of the input, plus one; 0: not in it. */
  #places = new Uint32Array(64);
  readonly #names: InputId[] = [];
  #ids = new Uint32Array(256);

  private constructor(segment: Segment, file: DiskFile, options: SegmentWriterOptions, scratch: Scratch) {
    this.segment = segment;
    this.#file = file;
    this.#options = options;
    this.#sorter = scratch.sorter;
    this.#out = scratch.out;
    this.#index = new SegmentIndex(segment.first, segment.header.salt);
    segment.index = this.#index;
    segment.bytes = segmentHeaderBytes;
  }

  /** A new, empty segment that survives a power cut. Throws what the disk throws; then nothing is left of it. */
  static create(header: SegmentHeader, options: SegmentWriterOptions, scratch: Scratch): SegmentWriter {
    const { disk, folder } = options;
    for (let attempt = 0; ; attempt++) {
      const name = segmentName(header.first, attempt);
      if (disk.list(folder).includes(name)) continue;
      const path = `${folder}/${name}`;
      const file = disk.open(path, "create");
      try {
        file.setSize(options.fullBytes);
        writeFully(file, writeSegmentHeader(header), 0);
        file.sync();
        disk.syncFolder(folder);
        return new SegmentWriter(new Segment(name, path, header), file, options, scratch);
      } catch (error) {
        quietly(() => file.close());
        quietly(() => disk.remove(path));
        throw error;
      }
    }
  }

  /**
   * Writes and syncs the points from `from` on, as many as fit, and says where it stopped: those before that are durable.
   * Returns `from` itself when the segment is full. Throws what the disk throws; then this writer must be given up.
   */
  write(points: PointColumns, from: number, to: number, inputs: InputTable): number {
    const out = this.#out;
    const pending: Pending[] = [];
    const start = this.#index.endOffset;
    out.cut();
    let at = from;
    let sequence = this.#index.endSequence;
    while (at < to && out.length < maxWriteBytes) {
      const end = Math.min(to, at + maxRecordPoints);
      const before = out.length;
      const known = this.#names.length;
      const record = this.#encode(points, at, end, sequence, inputs);
      // The first record of a segment goes in, however long it is.
      if (start + out.length > this.#options.fullBytes && (at > from || this.#index.sequences.length > 0)) {
        out.cut(before);
        this.#forget(known, inputs);
        break;
      }
      pending.push(record);
      sequence += end - at;
      at = end;
    }
    if (pending.length === 0) return from;
    writeFully(this.#file, out.written(), start);
    this.#file.sync();
    this.#index.endOffset = start + out.length;
    this.segment.bytes = this.#index.endOffset;
    for (let i = this.#index.dictionary.length; i < this.#names.length; i++)
      this.#index.dictionary.push(this.#names[i]);
    for (const record of pending) {
      this.#index.add(start + record.offset, record);
      this.segment.extend(record.points, record.from, record.to);
    }
    return at;
  }

  /** Writes the totals and cuts the file to what is used. Throws what the disk throws; the points are safe all the same. */
  seal(): void {
    const { segment } = this;
    const out = this.#out;
    out.cut();
    this.#writeDictionary(0, segment.endSequence);
    const earliest = segment.earliest ?? Number.NaN;
    const latest = segment.latest ?? Number.NaN;
    const { endSequence, lastWall, lastUptime } = segment;
    const seal = { endSequence, earliest, latest, lastWall, lastUptime };
    writeSeal(out, seal, segment.header.salt, this.#options.checksum);
    segment.sealed = true;
    try {
      writeFully(this.#file, out.written(), this.#index.endOffset);
      this.#index.endOffset += out.length;
      this.#file.setSize(this.#index.endOffset);
      this.#file.sync();
      segment.bytes = this.#index.endOffset;
    } finally {
      quietly(() => this.#file.close());
    }
  }

  /** Never writes to the file again: after a failed sync nothing is known about it beyond what was synced before. */
  abandon(): void {
    this.segment.sealed = true;
    quietly(() => this.#file.close());
  }

  #encode(points: PointColumns, from: number, to: number, sequence: number, inputs: InputTable): Pending {
    const out = this.#out;
    const known = this.#names.length;
    const ids = this.#idsOf(points, from, to, inputs);
    let earliest = Number.POSITIVE_INFINITY;
    let latest = Number.NEGATIVE_INFINITY;
    for (let i = from; i < to; i++) {
      const time = points.times[i]!;
      if (time < earliest) earliest = time;
      if (time > latest) latest = time;
    }
    const columns = this.#sorter.sort(ids, points.times, points.values, from, to);
    this.#writeDictionary(known, sequence);
    const offset = out.length;
    this.#writePoints(columns, { sequence, points: to - from, from: earliest, to: latest });
    this.#writeDictionary(known, sequence + to - from);
    return { sequence, points: to - from, from: earliest, to: latest, offset };
  }

  #writePoints(columns: SortedColumns, fields: Omit<Pending, "offset">): void {
    const { salt } = this.segment.header;
    const payload = (out: ByteWriter) => writeColumns(out, columns, fields.from);
    writeRecord(this.#out, { ...fields, type: recordTypes.points, salt }, payload, this.#options.checksum);
  }

  /** Places in the dictionary, at the same indices as the points. */
  #idsOf(points: PointColumns, from: number, to: number, inputs: InputTable): Uint32Array {
    if (this.#ids.length < to) this.#ids = new Uint32Array(2 ** Math.ceil(Math.log2(to)));
    if (this.#places.length < inputs.size) {
      const grown = new Uint32Array(2 ** Math.ceil(Math.log2(inputs.size)));
      grown.set(this.#places);
      this.#places = grown;
    }
    for (let i = from; i < to; i++) {
      const input = points.inputs[i]!;
      if (this.#places[input] === 0) {
        this.#names.push(inputs.inputAt(input));
        this.#places[input] = this.#names.length;
      }
      this.#ids[i] = this.#places[input]! - 1;
    }
    return this.#ids;
  }

  /** Takes back the names from place `known` on: they were not written. */
  #forget(known: number, inputs: InputTable): void {
    for (const name of this.#names.splice(known)) this.#places[inputs.numberOf(name)] = 0;
  }

  #writeDictionary(first: number, sequence: number): void {
    for (let at = first; at < this.#names.length; ) {
      let end = at;
      for (let bytes = 0; end < this.#names.length && bytes < maxDictionaryBytes; end++)
        bytes += this.#names[end]!.length + 2;
      const names = this.#names.slice(at, end);
      const start = at;
      const fields = {
        type: recordTypes.dictionary,
        points: 0,
        sequence,
        from: 0,
        to: 0,
        salt: this.segment.header.salt,
      };
      const payload = (out: ByteWriter) => {
        out.varint(start);
        out.varint(names.length);
        for (const name of names) out.text(name);
      };
      writeRecord(this.#out, fields, payload, this.#options.checksum);
      at = end;
    }
  }
}

/** Memory that the segments of one buffer use one after the other. */
export interface Scratch {
  readonly sorter: SeriesSorter;
  readonly out: ByteWriter;
}

function quietly(action: () => void): void {
  try {
    action();
  } catch {
    // The file is given up: whether this worked changes nothing.
  }
}
