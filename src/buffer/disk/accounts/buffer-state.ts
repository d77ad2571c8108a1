// What a slot of the state holds, and its bytes.
import type { Loss } from "../../../core/buffer.ts";
import { epochMicros } from "../../../core/point.ts";
import type { ByteReader, ByteWriter } from "../files/bytes.ts";
import type { SeriesState, SettledState } from "./coverage.ts";
import type { RemovedRange } from "./removed-ranges.ts";

export interface SegmentState extends SettledState {
  readonly name: string;
  /** Of its header: a file that took the place of the segment has another one, a rewritten segment too. */
  readonly salt: number;
  /** Points of `series` less those of `gaps`. */
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
  /** Points of dropped segments that are on their way to the service: with the process they are lost. */
  readonly leased: readonly LeasedLoss[];
  readonly segments: readonly SegmentState[];
  /** Name of the segment that is being written; empty: none is. */
  readonly newest: string;
  /** Times of the earliest and the latest point of segments that are not settled; undefined where there are none. */
  readonly oldest: number | undefined;
  readonly latest: number | undefined;
  readonly removed: readonly RemovedRange[];
  /** Sequence numbers at which the segments begin. */
  readonly starts: readonly number[];
}

export function writeState(out: ByteWriter, state: BufferState): void {
  out.text(state.stream);
  for (const count of [state.opens, Math.floor(state.uptime), state.durable, state.origin]) out.varint(count);
  out.text(state.integration);
  for (const count of [state.settled, state.refused, state.duplicates, state.collided]) out.varint(count);
  out.varint(state.losses.length);
  for (const loss of state.losses) {
    writeLoss(out, loss);
    out.varint(loss.intervals.length);
    for (const { number, points, from, to } of loss.intervals) {
      out.varint(number);
      out.varint(points);
      out.f64(from ?? Number.NaN);
      out.f64(to ?? Number.NaN);
    }
  }
  out.varint(state.leased.length);
  for (const leased of state.leased) writeLoss(out, leased);
  out.varint(state.segments.length);
  for (const segment of state.segments) {
    out.text(segment.name);
    out.u32(segment.salt);
    out.varint(Math.max(0, segment.settledBySeries));
    out.varint(Math.max(0, -segment.settledBySeries));
    writeBounds(out, segment.whole);
    writeSeries(out, segment.series);
    writeSeries(out, segment.gaps);
  }
  out.text(state.newest);
  out.f64(state.oldest ?? Number.NaN);
  out.f64(state.latest ?? Number.NaN);
  writeRemoved(out, state);
}

function writeRemoved(out: ByteWriter, { losses, removed, starts }: BufferState): void {
  for (const { found = 0 } of losses) out.varint(found);
  out.varint(removed.length);
  let before = 0;
  for (const { first, end, lost, reason } of removed) {
    out.varint(first - before);
    out.varint(end - first);
    out.varint(lost);
    if (lost > 0) out.text(reason);
    before = end;
  }
  writeBounds(out, starts);
}

function readRemoved(reader: ByteReader, listed: readonly Loss[]): Pick<BufferState, "losses" | "removed" | "starts"> {
  const losses = listed.map((loss) => {
    const found = reader.varint();
    return found > 0 ? { ...loss, found } : loss;
  });
  let before = 0;
  const removed = readList(reader, () => {
    const first = before + reader.varint();
    const end = first + reader.varint();
    const lost = reader.varint();
    before = end;
    return { first, end, lost, reason: lost > 0 ? reader.text() : "" };
  });
  return { losses, removed, starts: readBounds(reader) };
}

function writeSeries(out: ByteWriter, series: readonly SeriesState[]): void {
  out.varint(series.length);
  for (const { place, bounds } of series) {
    out.varint(place);
    writeBounds(out, bounds);
  }
}

export function readState(reader: ByteReader): BufferState {
  const stream = reader.text();
  const [opens, uptime, durable, origin] = [reader.varint(), reader.varint(), reader.varint(), reader.varint()];
  const integration = reader.text();
  const [settled, refused, duplicates, collided] = [reader.varint(), reader.varint(), reader.varint(), reader.varint()];
  const listed = readList(reader, () => {
    const total = readLoss(reader);
    const intervals = readList(reader, () => {
      const [number, points, from, to] = [reader.varint(), reader.varint(), reader.f64(), reader.f64()];
      return { number, points, from: micros(from), to: micros(to) };
    });
    return { ...total, intervals };
  });
  const leased = readList(reader, () => readLoss(reader));
  const segments = readList(reader, () => ({
    name: reader.text(),
    salt: reader.u32(),
    settledBySeries: reader.varint() - reader.varint(),
    whole: readBounds(reader),
    series: readSeries(reader),
    gaps: readSeries(reader),
  }));
  const newest = reader.text();
  const [oldest, latest] = [micros(reader.f64()), micros(reader.f64())];
  const counts = { opens, uptime, durable, origin, settled, refused, duplicates, collided };
  const removed = readRemoved(reader, listed);
  return { stream, ...counts, integration, leased, segments, newest, oldest, latest, ...removed };
}

function writeLoss(out: ByteWriter, { reason, points, from, to }: LeasedLoss): void {
  out.text(reason);
  out.varint(points);
  out.f64(from ?? Number.NaN);
  out.f64(to ?? Number.NaN);
}

function readLoss(reader: ByteReader) {
  const [reason, points, from, to] = [reader.text(), reader.varint(), reader.f64(), reader.f64()];
  return { reason, points, from: micros(from), to: micros(to) };
}

function readSeries(reader: ByteReader): SeriesState[] {
  return readList(reader, () => ({ place: reader.varint(), bounds: readBounds(reader) }));
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
