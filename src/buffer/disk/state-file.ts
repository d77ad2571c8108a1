// What the buffer remembers beside its segments: what is settled, and its accounts. Two slots are written in turn, so
// that a torn write costs the last ten seconds of it at most. It may lag behind what was settled and never leads; losing
// both slots costs repeats, never points.
//
//   0  magic       8     "TFSTAT\r\n"
//   8  generation  f64   the higher one counts
//  16  length      u32   of the payload that begins at 32
//  20  payload CRC u32
//  24  header CRC  u32   over bytes 0 to 23
import type { Loss } from "../../core/buffer.ts";
import { epochMicros } from "../../core/point.ts";
import { ByteReader, ByteWriter } from "./bytes.ts";
import { crc32c } from "./crc32c.ts";
import { type Disk, readFile, withRetries, writeFully } from "./disk.ts";

const slotNames = ["state-a.bin", "state-b.bin"] as const;
const headerBytes = 32;
/** Written in full when a slot is made, so that a full disk still takes it. */
const reservedBytes = 64 * 1_024;
const magic = Uint8Array.from([0x54, 0x46, 0x53, 0x54, 0x41, 0x54, 0x0d, 0x0a]);

export interface SegmentState {
  readonly name: string;
  readonly generation: number;
  readonly settledBySeries: number;
  /** Begin and end of the stretches that are done with, by sequence number. */
  readonly whole: readonly number[];
  readonly series: readonly { readonly place: number; readonly bounds: readonly number[] }[];
}

export interface BufferState {
  /** How often the buffer was opened. */
  readonly opens: number;
  /** Milliseconds it was open in its life. */
  readonly uptime: number;
  /** All points before this sequence number were durable. */
  readonly durable: number;
  /** Sequence number at which the accounts begin: 0, or where they had to be started anew. */
  readonly origin: number;
  readonly integration: string;
  readonly settled: number;
  readonly refused: number;
  readonly duplicates: number;
  readonly collided: number;
  readonly losses: readonly Loss[];
  readonly segments: readonly SegmentState[];
  /** Name of the segment that is being written; empty: none is, or a version before this field wrote the state. */
  readonly newest: string;
}

export class StateFile {
  readonly #disk: Disk;
  readonly #folder: string;
  readonly #out = new ByteWriter();
  #generation: number;
  #slot: 0 | 1;

  private constructor(disk: Disk, folder: string, generation: number, slot: 0 | 1) {
    this.#disk = disk;
    this.#folder = folder;
    this.#generation = generation;
    this.#slot = slot;
  }

  /** How many slots there are, and the state of the newest that is whole. */
  static open(disk: Disk, folder: string): { file: StateFile; state: BufferState | undefined; slots: number } {
    let newest: { generation: number; state: BufferState; slot: 0 | 1 } | undefined;
    let found = 0;
    for (const slot of [0, 1] as const) {
      const read = readSlot(disk, `${folder}/${slotNames[slot]}`);
      if (read === undefined) continue;
      found++;
      if (read !== "damaged" && read.generation > (newest?.generation ?? -1)) newest = { ...read, slot };
    }
    const next = newest?.slot === 0 ? 1 : 0;
    const file = new StateFile(disk, folder, newest?.generation ?? 0, next);
    return { file, state: newest?.state, slots: found };
  }

  /** Durable when it returns. Throws what the disk throws; then the slot written before still counts. */
  write(state: BufferState): void {
    const out = this.#out;
    out.cut();
    out.skip(headerBytes);
    writePayload(out, state);
    const used = out.length;
    if (used < reservedBytes) out.skip(reservedBytes - used);
    const bytes = out.written();
    const view = new DataView(bytes.buffer, bytes.byteOffset, headerBytes);
    bytes.set(magic);
    view.setFloat64(8, this.#generation + 1, true);
    view.setUint32(16, used - headerBytes, true);
    view.setUint32(20, crc32c(bytes, headerBytes, used), true);
    view.setUint32(24, crc32c(bytes, 0, 24), true);
    const name = slotNames[this.#slot];
    const isNew = !this.#disk.list(this.#folder).includes(name);
    const file = this.#disk.open(`${this.#folder}/${name}`, isNew ? "create" : "write");
    try {
      // The filling is written once, when the slot is made.
      writeFully(file, isNew ? bytes : bytes.subarray(0, used), 0);
      file.sync();
    } finally {
      file.close();
    }
    if (isNew) this.#disk.syncFolder(this.#folder);
    this.#generation++;
    this.#slot = this.#slot === 0 ? 1 : 0;
  }
}

function readSlot(disk: Disk, path: string): { generation: number; state: BufferState } | "damaged" | undefined {
  let bytes: Uint8Array;
  try {
    bytes = withRetries(() => readFile(disk, path));
  } catch {
    return undefined;
  }
  if (bytes.length < headerBytes || magic.some((byte, i) => bytes[i] !== byte)) return "damaged";
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const end = headerBytes + view.getUint32(16, true);
  if (view.getUint32(24, true) !== crc32c(bytes, 0, 24) || end > bytes.length) return "damaged";
  if (view.getUint32(20, true) !== crc32c(bytes, headerBytes, end)) return "damaged";
  try {
    return { generation: view.getFloat64(8, true), state: readPayload(new ByteReader(bytes, headerBytes, end)) };
  } catch {
    return "damaged";
  }
}

function writePayload(out: ByteWriter, state: BufferState): void {
  for (const count of [state.opens, Math.floor(state.uptime), state.durable, state.origin]) out.varint(count);
  out.text(state.integration);
  for (const count of [state.settled, state.refused, state.duplicates, state.collided]) out.varint(count);
  out.varint(state.losses.length);
  for (const loss of state.losses) {
    out.text(loss.reason);
    out.varint(loss.points);
    out.f64(loss.from ?? Number.NaN);
    out.f64(loss.to ?? Number.NaN);
  }
  out.varint(state.segments.length);
  for (const segment of state.segments) {
    out.text(segment.name);
    out.varint(segment.generation);
    out.varint(segment.settledBySeries);
    writeBounds(out, segment.whole);
    out.varint(segment.series.length);
    for (const { place, bounds } of segment.series) {
      out.varint(place);
      writeBounds(out, bounds);
    }
  }
  out.text(state.newest);
}

function readPayload(reader: ByteReader): BufferState {
  const [opens, uptime, durable, origin] = [reader.varint(), reader.varint(), reader.varint(), reader.varint()];
  const integration = reader.text();
  const [settled, refused, duplicates, collided] = [reader.varint(), reader.varint(), reader.varint(), reader.varint()];
  const losses = readList(reader, () => {
    const [reason, points, from, to] = [reader.text(), reader.varint(), reader.f64(), reader.f64()];
    return { reason, points, from: micros(from), to: micros(to) };
  });
  const segments = readList(reader, () => ({
    name: reader.text(),
    generation: reader.varint(),
    settledBySeries: reader.varint(),
    whole: readBounds(reader),
    series: readList(reader, () => ({ place: reader.varint(), bounds: readBounds(reader) })),
  }));
  const newest = reader.left > 0 ? reader.text() : "";
  const counts = { opens, uptime, durable, origin, settled, refused, duplicates, collided };
  return { ...counts, integration, losses, segments, newest };
}

function writeBounds(out: ByteWriter, bounds: readonly number[]): void {
  out.varint(bounds.length);
  let before = 0;
  for (const bound of bounds) {
    out.varint(bound - before);
    before = bound;
  }
}

function readBounds(reader: ByteReader): number[] {
  let before = 0;
  return readList(reader, () => (before += reader.varint()));
}

function readList<T>(reader: ByteReader, read: () => T): T[] {
  const list: T[] = [];
  for (let left = reader.varint(); left > 0; left--) list.push(read());
  return list;
}

const micros = (value: number) => (Number.isNaN(value) ? undefined : epochMicros(value));
