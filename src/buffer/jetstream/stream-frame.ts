// A message of the stream: points of one node, in columns.
//
//   version     u8                1
//   node, epoch text, text        the publishing node, and one start of it
//   number      varint            ascends by one over the frames of an epoch
//   before      varint            points in all earlier frames of the epoch
//   dictionary  text              the list of names that `numbers` refers to (`stream-names.ts`)
//   late        u8                1: its points may replace points of earlier frames
//   latest      float64           the latest time that the node has published, in this epoch or before
//   series      varint
//   streams     as in cold records of the disk buffer (`columns.ts`); with these columns (`dense-values.ts`):
//     numbers                     names of the series
//     counts                      points per series; 0: same count and times as the series before
//     times                       of each series with times of its own
//     values                      one column per series; if series are short, one column for all

import type { SeriesColumns } from "../../core/block.ts";
import { AgentError } from "../../core/errors.ts";
import { ByteReader, ByteWriter } from "../disk/files/bytes.ts";
import { writeDenseColumn } from "../disk/format/dense-choice.ts";
import { readDenseColumn, readStreams } from "../disk/format/dense-reader.ts";
import { DenseStreams, writeStreams } from "../disk/format/dense-values.ts";

/** Maximum size of a message, below the default limit of NATS, 1 MiB. */
export const maxFrameBytes = 512 * 1_024;
/** As in a record of the disk buffer: the uploader reserves memory for this many points of a series. */
export const maxFramePoints = 65_536;
/** With fewer points per series on average, all values form one column, since a column header takes several bytes. */
const shortSeries = 8;
const version = 1;
const mostVersions = 31;

export interface FrameHeader {
  readonly node: string;
  readonly epoch: string;
  readonly number: number;
  readonly before: number;
  readonly dictionary: string;
  readonly late: boolean;
  readonly latest: number;
}

export interface StreamFrame extends FrameHeader {
  readonly points: number;
  readonly numbers: Float64Array;
  /** Columns as in `Block`. */
  readonly timeStarts: Uint32Array;
  readonly valueStarts: Uint32Array;
  readonly times: Float64Array;
  readonly values: Float64Array;
}

/** Together with its number, identifies a frame independently of its position in the stream. */
export const epochKey = ({ node, epoch }: Pick<FrameHeader, "node" | "epoch">) => `${node}\n${epoch}`;
/** Identifies a frame wherever the stream has it. */
export const frameKey = (header: Pick<FrameHeader, "node" | "epoch" | "number">) =>
  `${epochKey(header)}\n${header.number}`;
export const messageIdOf = ({ node, epoch, number }: FrameHeader) => `${node}.${epoch}.${number}`;

const streams = new DenseStreams();
const writer = new ByteWriter();

/** `series`: the series of `columns` to encode. `numbers`: their dictionary numbers. */
export function encodeFrame(
  header: FrameHeader,
  columns: Pick<SeriesColumns, "timeStarts" | "valueStarts" | "times" | "values">,
  series: readonly number[],
  numbers: readonly number[],
): Uint8Array {
  const { timeStarts, valueStarts } = columns;
  const countOf = (at: number) => valueStarts[at + 1]! - valueStarts[at]!;
  const counts = new Float64Array(series.length);
  const points = series.reduce((sum, at) => sum + countOf(at), 0);
  const times = new Float64Array(points);
  const values = new Float64Array(points);
  let timesUsed = 0;
  let used = 0;
  streams.clear();
  for (const [i, at] of series.entries()) {
    const count = countOf(at);
    const before = i > 0 ? series[i - 1]! : -1;
    const shares = before >= 0 && timeStarts[before] === timeStarts[at] && countOf(before) === count;
    counts[i] = shares ? 0 : count;
    if (!shares) times.set(columns.times.subarray(timeStarts[at], timeStarts[at]! + count), timesUsed);
    if (!shares) timesUsed += count;
    values.set(columns.values.subarray(valueStarts[at], valueStarts[at]! + count), used);
    used += count;
  }
  writeDenseColumn(streams, Float64Array.from(numbers), 0, series.length);
  writeDenseColumn(streams, counts, 0, series.length);
  writeDenseColumn(streams, times, 0, timesUsed);
  if (points < shortSeries * series.length) writeDenseColumn(streams, values, 0, points);
  else
    for (let i = 0, at = 0; i < series.length; i++) {
      const count = countOf(series[i]!);
      writeDenseColumn(streams, values, at, at + count);
      at += count;
    }
  writer.cut();
  writeHeader(header);
  writer.varint(series.length);
  writeStreams(writer, streams);
  return writer.written().slice();
}

function writeHeader({ node, epoch, number, before, dictionary, late, latest }: FrameHeader): void {
  writer.u8(version);
  writer.text(node);
  writer.text(epoch);
  writer.varint(number);
  writer.varint(before);
  writer.text(dictionary);
  writer.u8(late ? 1 : 0);
  writer.f64(latest);
}

function readHeader(reader: ByteReader): FrameHeader {
  const found = reader.u8();
  if (found === 0 || found > mostVersions) throw new RangeError("not a message of points");
  if (found !== version) throw new AgentError("BUFFER_NEWER", `a message of the stream has version ${found}`);
  return {
    node: reader.text(),
    epoch: reader.text(),
    number: reader.varint(),
    before: reader.varint(),
    dictionary: reader.text(),
    late: reader.u8() === 1,
    latest: reader.f64(),
  };
}

/** Throws `BUFFER_NEWER` for a later version, `RangeError` or an error of zlib for a damaged message. */
export function decodeFrameHeader(bytes: Uint8Array): FrameHeader {
  return readHeader(new ByteReader(bytes));
}

/** Throws as `decodeFrameHeader` does. */
export function decodeFrame(bytes: Uint8Array): StreamFrame {
  const reader = new ByteReader(bytes);
  const header = readHeader(reader);
  const count = reader.varint();
  const source = readStreams(reader);
  const column = (length: number) => readDenseColumn(source, length).slice();
  const numbers = column(count);
  const counts = column(count);
  const timeStarts = new Uint32Array(count);
  const valueStarts = new Uint32Array(count + 1);
  let timesUsed = 0;
  for (let i = 0; i < count; i++) {
    const shares = counts[i] === 0 && i > 0;
    const points = shares ? valueStarts[i]! - valueStarts[i - 1]! : counts[i]!;
    timeStarts[i] = shares ? timeStarts[i - 1]! : timesUsed;
    if (!shares) timesUsed += points;
    valueStarts[i + 1] = valueStarts[i]! + points;
  }
  const points = valueStarts[count]!;
  if (timesUsed > points || points > 2 ** 20) throw new RangeError("more points than a frame holds");
  const times = column(timesUsed);
  const values = new Float64Array(points);
  if (points < shortSeries * count) values.set(column(points));
  else for (let i = 0; i < count; i++) values.set(column(valueStarts[i + 1]! - valueStarts[i]!), valueStarts[i]);
  return { ...header, points, numbers, timeStarts, valueStarts, times, values };
}
