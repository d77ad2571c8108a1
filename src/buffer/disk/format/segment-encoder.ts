// Encodes points as records of one segment, together with the Input IDs that they need. A new Input ID is written
// before and after the first record that uses it, and once more when the segment is sealed. So no single damaged place
// makes other records unreadable.
import type { InputId } from "../../../core/point.ts";
import { type ByteWriter, copied } from "../files/bytes.ts";
import { writeColumns, writeDenseColumns } from "./columns.ts";
import type { InputTable, PointColumns } from "./input-table.ts";
import { type RecordHeader, recordHeaderBytes, recordTypes, writeRecord } from "./record.ts";
import type { SeriesSorter } from "./series-sorter.ts";

const maxDictionaryBytes = 128 * 1_024;

export interface EncodedRecord extends Pick<RecordHeader, "sequence" | "points" | "from" | "to" | "late"> {
  readonly offset: number;
  /** Size of the padded payload. Above `maxPayloadBytes` it could not be read. */
  readonly bytes: number;
}

export type EncodedPart = Pick<RecordHeader, "from" | "to" | "late">;

/** Memory that all segments of a buffer share. */
export interface Scratch {
  readonly sorter: SeriesSorter;
  readonly out: ByteWriter;
}

export interface EncoderOptions {
  readonly salt: number;
  /** Compresses a stream of a cold record. Undefined: records are hot. */
  readonly compress?: (stream: Uint8Array<ArrayBuffer>) => Uint8Array;
}

export class SegmentEncoder {
  /** Input IDs by place in the dictionary. */
  readonly names: InputId[] = [];
  readonly out: ByteWriter;
  readonly #options: EncoderOptions;
  readonly #sorter: SeriesSorter;
  /** By input number: place in the dictionary plus one; 0: not in it. */
  #places = new Uint32Array(64);
  #ids = new Uint32Array(256);

  constructor(options: EncoderOptions, scratch: Scratch) {
    this.#options = options;
    this.#sorter = scratch.sorter;
    this.out = scratch.out;
  }

  /** Writes the points as one record with the first sequence number `sequence`. */
  encode(points: PointColumns, { from, to, late }: EncodedPart, sequence: number, inputs: InputTable): EncodedRecord {
    const known = this.names.length;
    const ids = this.#idsOf(points, from, to, inputs);
    let earliest = Number.POSITIVE_INFINITY;
    let latest = Number.NEGATIVE_INFINITY;
    for (let i = from; i < to; i++) {
      const time = points.times[i]!;
      if (time < earliest) earliest = time;
      if (time > latest) latest = time;
    }
    const columns = this.#sorter.sort(ids, points.times, points.values, from, to);
    this.writeDictionary(known, sequence);
    const offset = this.out.length;
    const { salt, compress } = this.#options;
    const fields = { sequence, points: to - from, from: earliest, to: latest, late };
    const payload = (out: ByteWriter) => {
      if (compress) writeDenseColumns(out, columns, earliest, compress);
      else writeColumns(out, columns, earliest);
      return compress ? 3 : 1;
    };
    writeRecord(this.out, { ...fields, type: recordTypes.points, salt }, payload);
    const bytes = this.out.length - offset - recordHeaderBytes;
    this.writeDictionary(known, sequence + to - from);
    return { ...fields, offset, bytes };
  }

  /** Removes the names from place `known` on, because they were not written. */
  forget(known: number, inputs: InputTable): void {
    for (const name of this.names.splice(known)) this.#places[inputs.numberOf(name)] = 0;
  }

  writeDictionary(first: number, sequence: number): void {
    const { salt } = this.#options;
    for (let at = first; at < this.names.length; ) {
      let end = at;
      for (let bytes = 0; end < this.names.length && bytes < maxDictionaryBytes; end++)
        bytes += this.names[end]!.length + 2;
      const names = this.names.slice(at, end);
      const start = at;
      const fields = { type: recordTypes.dictionary, points: 0, sequence, from: 0, to: 0, salt };
      const payload = (out: ByteWriter) => {
        out.varint(start);
        out.varint(names.length);
        for (const name of names) out.text(name);
        return 1;
      };
      writeRecord(this.out, fields, payload);
      at = end;
    }
  }

  #idsOf(points: PointColumns, from: number, to: number, inputs: InputTable): Uint32Array {
    if (this.#ids.length < to) this.#ids = new Uint32Array(2 ** Math.ceil(Math.log2(to)));
    if (this.#places.length < inputs.size)
      this.#places = copied(this.#places, new Uint32Array(2 ** Math.ceil(Math.log2(inputs.size))));
    for (let i = from; i < to; i++) {
      const input = points.inputs[i]!;
      if (this.#places[input] === 0) {
        this.names.push(inputs.inputAt(input));
        this.#places[input] = this.names.length;
      }
      this.#ids[i] = this.#places[input]! - 1;
    }
    return this.#ids;
  }
}
