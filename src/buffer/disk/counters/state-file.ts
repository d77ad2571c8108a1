// The state of the buffer outside of its segments: the settled ranges and the counters. It may lag behind the
// settlements but never leads them. Losing all slots costs repeated deliveries, never points.
//
// Three slots. The slot that was synced last stays untouched until another one is synced. The other two alternate: each
// settlement is written to one of them without a sync, so the page cache keeps it if the process dies. About every 5 s,
// and before a segment is removed, a state is written and synced.
//
//   a  synced, generation 40          a killed process finds c, the newest
//   b  written, generation 41         a power cut may tear b and c: a remains
//   c  written, generation 42         the next state, 43, goes to b
//
//   0  magic       8     "TFSTA2\r\n"
//   8  generation  f64   the higher one counts
//  16  length      u32   of the payload that begins at 32
//  20  payload CRC u32
//  24  header CRC  u32   over bytes 0 to 23

import { attempt } from "../../../lib/flow/attempt.ts";
import { ByteReader, ByteWriter, crc32 } from "../files/bytes.ts";
import { type Disk, ifThere, isFull, readFile, withFile, withRetries, writeFully } from "../files/disk.ts";
import { type BufferState, readState, writeState } from "./buffer-state.ts";

const slotNames = ["state-a.bin", "state-b.bin", "state-c.bin"] as const;
const headerBytes = 32;
/** A new slot is filled to this size, so that later writes succeed on a full disk. */
const reservedBytes = 64 * 1_024;
const magic = Uint8Array.from([0x54, 0x46, 0x53, 0x54, 0x41, 0x32, 0x0d, 0x0a]);

export class StateFile {
  readonly #disk: Disk;
  readonly #folder: string;
  readonly #out = new ByteWriter();
  #generation: number;
  /** Generation in each slot. −1: the slot holds no state of this buffer. */
  readonly #slots: number[];
  /** The slot synced last, which is not written to. */
  #synced: number | undefined;

  private constructor(disk: Disk, folder: string, generation: number, slots: number[], synced: number | undefined) {
    this.#disk = disk;
    this.#folder = folder;
    this.#generation = generation;
    this.#slots = slots;
    this.#synced = synced;
  }

  /** The states in intact slots, newest first, and the number of slot files. */
  static read(disk: Disk, folder: string): { states: readonly FoundState[]; slots: number } {
    const states: FoundState[] = [];
    let slots = 0;
    for (const [slot, name] of slotNames.entries()) {
      const read = readSlot(disk, `${folder}/${name}`);
      if (read !== undefined) slots++;
      if (typeof read === "object") states.push({ ...read, slot });
    }
    return { states: states.toSorted((a, b) => b.generation - a.generation), slots };
  }

  /** Continues after `current`, one of the `found` states. */
  static open(disk: Disk, folder: string, found: readonly FoundState[], current: FoundState | undefined): StateFile {
    const slots = slotNames.map((_, slot) => {
      const own = found.find((each) => each.slot === slot && each.state.stream === current?.state.stream);
      return own?.generation ?? -1;
    });
    const generation = Math.max(0, ...found.map((each) => each.generation));
    // The previous process may have written `current` without a sync, and its synced slot may be overwritten next.
    const synced = attempt(() => {
      if (current) withFile(disk, `${folder}/${slotNames[current.slot]}`, "write", (file) => file.sync());
      return current?.slot;
    });
    return new StateFile(disk, folder, generation, slots, synced);
  }

  /** The state then survives a kill, and with `sync` a power cut. If it throws, the slot synced last is still valid. */
  write(state: BufferState, sync: boolean): void {
    const out = this.#out;
    out.cut();
    out.skip(headerBytes);
    writeState(out, state);
    const used = out.length;
    if (used < reservedBytes) out.skip(reservedBytes - used);
    const bytes = out.written();
    const view = new DataView(bytes.buffer, bytes.byteOffset, headerBytes);
    bytes.set(magic);
    view.setFloat64(8, this.#generation + 1, true);
    view.setUint32(16, used - headerBytes, true);
    view.setUint32(20, crc32(bytes, headerBytes, used), true);
    view.setUint32(24, crc32(bytes, 0, 24), true);
    const slot = this.#writeFreeSlot(bytes, used, sync);
    this.#generation++;
    this.#slots[slot] = this.#generation;
    if (sync) this.#synced = slot;
  }

  /** Writes to the slot with the oldest state, except the one synced last. Returns the slot. */
  #writeFreeSlot(bytes: Uint8Array, used: number, sync: boolean): number {
    const free = slotNames.map((_, slot) => slot).filter((slot) => slot !== this.#synced);
    free.sort((a, b) => this.#slots[a]! - this.#slots[b]!);
    for (const slot of free)
      try {
        this.#slots[slot] = -1;
        this.#writeSlot(`${this.#folder}/${slotNames[slot]}`, bytes, used, sync);
        return slot;
      } catch (error) {
        // A full disk has no room for a new slot; existing slots have their blocks allocated.
        if (!isFull(error) || slot === free.at(-1)) throw error;
      }
    throw new Error("there is no slot to write to");
  }

  #writeSlot(path: string, bytes: Uint8Array, used: number, sync: boolean): void {
    const existing = ifThere(() => this.#disk.open(path, "write"));
    const isNew = existing === undefined;
    const file = existing ?? this.#disk.open(path, "create");
    try {
      // Only a new slot is written with its padding.
      writeFully(file, isNew ? bytes : bytes.subarray(0, used), 0);
      if (sync || isNew) file.sync();
    } finally {
      file.close();
    }
    if (isNew) this.#disk.syncFolder(this.#folder);
  }
}

export interface FoundState {
  readonly slot: number;
  readonly generation: number;
  readonly state: BufferState;
}

function readSlot(disk: Disk, path: string): { generation: number; state: BufferState } | "damaged" | undefined {
  const bytes = attempt(() => withRetries(() => readFile(disk, path)));
  if (!bytes) return undefined;
  if (bytes.length < headerBytes || magic.some((byte, i) => bytes[i] !== byte)) return "damaged";
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const end = headerBytes + view.getUint32(16, true);
  if (view.getUint32(24, true) !== crc32(bytes, 0, 24) || end > bytes.length) return "damaged";
  if (view.getUint32(20, true) !== crc32(bytes, headerBytes, end)) return "damaged";
  const state = attempt(() => readState(new ByteReader(bytes, headerBytes, end)));
  return state ? { generation: view.getFloat64(8, true), state } : "damaged";
}
