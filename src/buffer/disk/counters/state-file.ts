// The state of the buffer outside of its segments: settled ranges, counters and losses. It may lag behind the
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

import type { Loss } from "../../../core/buffer.ts";
import { type EpochMicros, epochMicros } from "../../../core/point.ts";
import { attempt } from "../../../lib/flow/attempt.ts";
import { ByteReader, ByteWriter, crc32 } from "../files/bytes.ts";
import { type Disk, ifThere, readFile, withFile, withRetries, writeFully } from "../files/disk.ts";
import type { RemovedRange } from "./ranges.ts";

const slotNames = ["state-a.bin", "state-b.bin", "state-c.bin"] as const;
const headerBytes = 32;
/** A new slot is filled to this size, so that later writes succeed on a full disk. */
const reservedBytes = 64 * 1_024;
const magic = Uint8Array.from([0x54, 0x46, 0x53, 0x54, 0x41, 0x32, 0x0d, 0x0a]);

/** The states in intact slots, newest first, and the number of slot files. */
export function readStates(disk: Disk, folder: string): { states: readonly FoundState[]; slots: number } {
  const states: FoundState[] = [];
  let slots = 0;
  for (const [slot, name] of slotNames.entries()) {
    const read = readSlot(disk, `${folder}/${name}`);
    if (read !== undefined) slots++;
    if (typeof read === "object") states.push({ ...read, slot });
  }
  return { states: states.toSorted((a, b) => b.generation - a.generation), slots };
}

export type StateFile = ReturnType<typeof openStateFile>;

/** Continues after `current`, one of the `found` states. */
export function openStateFile(
  disk: Disk,
  folder: string,
  found: readonly FoundState[],
  current: FoundState | undefined,
) {
  const out = new ByteWriter();
  /** Generation in each slot. −1: the slot holds no state of this buffer. */
  const generations = slotNames.map((_, slot) => {
    const own = found.find((each) => each.slot === slot && each.state.stream === current?.state.stream);
    return own?.generation ?? -1;
  });
  let generation = Math.max(0, ...found.map((each) => each.generation));
  /** The slot synced last, which is not written to. */
  let synced = attempt(() => {
    // The previous process may have written `current` without a sync, and its synced slot may be overwritten next.
    if (current) withFile(disk, `${folder}/${slotNames[current.slot]}`, "write", (file) => file.sync());
    return current?.slot;
  });

  /** Writes to the slot with the oldest state, except the one synced last. Returns the slot. */
  function writeFreeSlot(bytes: Uint8Array, used: number, sync: boolean): number {
    const free = [...generations.keys()].filter((slot) => slot !== synced);
    free.sort((a, b) => generations[a]! - generations[b]!);
    for (const slot of free)
      try {
        generations[slot] = -1;
        writeSlot(`${folder}/${slotNames[slot]}`, bytes, used, sync);
        return slot;
      } catch (error) {
        // A full disk has no room for a new slot; existing ones have their blocks allocated. A bad block fails one slot.
        if (slot === free.at(-1)) throw error;
      }
    throw new Error("there is no slot to write to");
  }

  function writeSlot(path: string, bytes: Uint8Array, used: number, sync: boolean): void {
    const existing = ifThere(() => disk.open(path, "write"));
    const isNew = existing === undefined;
    const file = existing ?? disk.open(path, "create");
    try {
      // Only a new slot is written with its padding.
      writeFully(file, isNew ? bytes : bytes.subarray(0, used), 0);
      if (sync || isNew) file.sync();
    } finally {
      file.close();
    }
    if (isNew) disk.syncFolder(folder);
  }

  return {
    /** The state then survives a kill, and with `sync` a power cut. If it throws, the slot synced last is still valid. */
    write(state: BufferState, sync: boolean): void {
      out.cut();
      out.skip(headerBytes);
      writeState(out, state);
      const used = out.length;
      if (used < reservedBytes) out.skip(reservedBytes - used);
      const bytes = out.written();
      const view = new DataView(bytes.buffer, bytes.byteOffset, headerBytes);
      bytes.set(magic);
      view.setFloat64(8, generation + 1, true);
      view.setUint32(16, used - headerBytes, true);
      view.setUint32(20, crc32(bytes, headerBytes, used), true);
      view.setUint32(24, crc32(bytes, 0, 24), true);
      const slot = writeFreeSlot(bytes, used, sync);
      generations[slot] = ++generation;
      if (sync) synced = slot;
    },
  };
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

// Content and encoding of a state slot.

interface Codec<T> {
  write(out: ByteWriter, value: T): void;
  read(reader: ByteReader): T;
}

type Decoded<C> = C extends Codec<infer T> ? T : never;

const text: Codec<string> = { write: (out, value) => out.text(value), read: (reader) => reader.text() };
const count: Codec<number> = {
  write: (out, value) => out.varint(Math.floor(value)),
  read: (reader) => reader.varint(),
};
const salt: Codec<number> = { write: (out, value) => out.u32(value), read: (reader) => reader.u32() };
/** An integer as two counts: its positive part, then its negative part. One of them is 0. */
const signed: Codec<number> = {
  write(out, value) {
    out.varint(Math.max(0, value));
    out.varint(Math.max(0, -value));
  },
  read: (reader) => reader.varint() - reader.varint(),
};
/** NaN stands for undefined. */
const time: Codec<EpochMicros | undefined> = {
  write: (out, value) => out.f64(value ?? Number.NaN),
  read(reader) {
    const value = reader.f64();
    return Number.isNaN(value) ? undefined : epochMicros(value);
  },
};

function list<T>(item: Codec<T>): Codec<readonly T[]> {
  return {
    write(out, items) {
      out.varint(items.length);
      for (const each of items) item.write(out, each);
    },
    read(reader) {
      const items: T[] = [];
      for (let left = reader.varint(); left > 0; left--) items.push(item.read(reader));
      return items;
    },
  };
}

function fields<T extends object>(codecs: { readonly [Key in keyof T]: Codec<T[Key]> }): Codec<Readonly<T>> {
  const keys = Object.keys(codecs) as (keyof T)[]; // the object has no other keys
  return {
    write(out, value) {
      for (const key of keys) codecs[key].write(out, value[key]);
    },
    read(reader) {
      const value: Partial<T> = {};
      for (const key of keys) value[key] = codecs[key].read(reader);
      return value as T; // the loop has set every key
    },
  };
}

/** Ascending numbers, each encoded as the difference from the one before. */
const bounds: Codec<readonly number[]> = {
  write(out, values) {
    out.varint(values.length);
    for (let i = 0; i < values.length; i++) out.varint(values[i]! - (values[i - 1] ?? 0));
  },
  read(reader) {
    let before = 0;
    return list({ ...count, read: () => (before += reader.varint()) }).read(reader);
  },
};
const removed: Codec<readonly RemovedRange[]> = {
  write(out, ranges) {
    out.varint(ranges.length);
    for (const [i, { first, end, lost, reason }] of ranges.entries()) {
      out.varint(first - (ranges[i - 1]?.end ?? 0));
      out.varint(end - first);
      out.varint(lost);
      if (lost > 0) out.text(reason);
    }
  },
  read(reader) {
    const ranges: RemovedRange[] = [];
    for (let left = reader.varint(); left > 0; left--) {
      const first = (ranges.at(-1)?.end ?? 0) + reader.varint();
      const end = first + reader.varint();
      const lost = reader.varint();
      ranges.push({ first, end, lost, reason: lost > 0 ? reader.text() : "" });
    }
    return ranges;
  },
};
const series = list(fields({ place: count, bounds }));
const segment = fields({
  name: text,
  /** Salt of the segment's header. A file that replaced the segment, or a rewritten segment, has another one. */
  salt,
  /**
   * Settled points in `series` minus unsettled points in `gaps`. Only the records state these numbers; the bounds of
   * `whole` already state how many points `whole` has.
   */
  settledBySeries: signed,
  whole: bounds,
  series,
  gaps: series,
});
const span = { points: count, from: time, to: time };
const counts = fields({
  /** UUID of the buffer, 32 hexadecimal digits. */
  stream: text,
  opens: count,
  /** Milliseconds that the buffer was open in total. */
  uptime: count,
  /** All points before this sequence number were durable. */
  durable: count,
  /** Sequence number at which the counters begin: 0, or the next one at the last reset. */
  origin: count,
  integration: text,
  settled: count,
  refused: count,
  duplicates: count,
  collided: count,
  losses: list(
    fields<Omit<Loss, "found">>({ reason: text, ...span, intervals: list(fields({ number: count, ...span })) }),
  ),
  /** Leased points of dropped segments. They are lost if the process ends. */
  leased: list(fields({ reason: text, ...span })),
  segments: list(segment),
  /** Name of the segment being written; empty if there is none. */
  newest: text,
  /** Earliest and latest time in unsettled segments. Undefined: there are none. */
  oldest: time,
  latest: time,
});

export type SegmentState = Decoded<typeof segment>;

export interface BufferState extends Omit<Decoded<typeof counts>, "losses"> {
  readonly losses: readonly Loss[];
  readonly removed: readonly RemovedRange[];
  /** First sequence number of each segment. */
  readonly starts: readonly number[];
}

function writeState(out: ByteWriter, state: BufferState): void {
  counts.write(out, state);
  for (const { found = 0 } of state.losses) out.varint(found);
  removed.write(out, state.removed);
  bounds.write(out, state.starts);
}

function readState(reader: ByteReader): BufferState {
  const read = counts.read(reader);
  const losses = read.losses.map((loss) => ({ ...loss, found: reader.varint() || undefined }));
  return { ...read, losses, removed: removed.read(reader), starts: bounds.read(reader) };
}
