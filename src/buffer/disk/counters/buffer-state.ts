// Content and encoding of a state slot.
import type { Loss } from "../../../core/buffer.ts";
import { type EpochMicros, epochMicros } from "../../../core/point.ts";
import type { ByteReader, ByteWriter } from "../files/bytes.ts";
import type { SettledState } from "./coverage.ts";
import type { RemovedRange } from "./removed-ranges.ts";

export interface SegmentState extends SettledState {
  readonly name: string;
  /** Salt of the segment's header. A file that replaced the segment, or a rewritten segment, has another one. */
  readonly salt: number;
  /** Settled points in `series` minus unsettled points in `gaps`. */
  readonly settledBySeries: number;
}

export interface LeasedLoss {
  readonly reason: string;
  readonly points: number;
  readonly from: number | undefined;
  readonly to: number | undefined;
}

export interface BufferState {
  /** UUID of the buffer, 32 hexadecimal digits. */
  readonly stream: string;
  readonly opens: number;
  /** Milliseconds that the buffer was open in total. */
  readonly uptime: number;
  /** All points before this sequence number were durable. */
  readonly durable: number;
  /** Sequence number at which the counters begin: 0, or the next one at the last reset. */
  readonly origin: number;
  readonly integration: string;
  readonly settled: number;
  readonly refused: number;
  readonly duplicates: number;
  readonly collided: number;
  readonly losses: readonly Loss[];
  /** Leased points of dropped segments. They are lost if the process ends. */
  readonly leased: readonly LeasedLoss[];
  readonly segments: readonly SegmentState[];
  /** Name of the segment being written; empty if there is none. */
  readonly newest: string;
  /** Earliest and latest time in unsettled segments. Undefined: there are none. */
  readonly oldest: number | undefined;
  readonly latest: number | undefined;
  readonly removed: readonly RemovedRange[];
  readonly starts: readonly number[];
}

interface Codec<T> {
  write(out: ByteWriter, value: T): void;
  read(reader: ByteReader): T;
}

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

function fields<T extends object>(codecs: { readonly [Key in keyof T]: Codec<T[Key]> }): Codec<T> {
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
const span = { points: count, from: time, to: time };
const intervals = list(fields({ number: count, ...span }));

const counts = fields<Omit<BufferState, "removed" | "starts">>({
  stream: text,
  opens: count,
  uptime: count,
  durable: count,
  origin: count,
  integration: text,
  settled: count,
  refused: count,
  duplicates: count,
  collided: count,
  losses: list(fields<Omit<Loss, "found">>({ reason: text, ...span, intervals })),
  leased: list(fields({ reason: text, ...span })),
  segments: list(fields({ name: text, salt, settledBySeries: signed, whole: bounds, series, gaps: series })),
  newest: text,
  oldest: time,
  latest: time,
});

export function writeState(out: ByteWriter, state: BufferState): void {
  counts.write(out, state);
  for (const { found = 0 } of state.losses) out.varint(found);
  removed.write(out, state.removed);
  bounds.write(out, state.starts);
}

export function readState(reader: ByteReader): BufferState {
  const read = counts.read(reader);
  const losses = read.losses.map((loss) => {
    const found = reader.varint();
    return found > 0 ? { ...loss, found } : loss;
  });
  return { ...read, losses, removed: removed.read(reader), starts: bounds.read(reader) };
}
