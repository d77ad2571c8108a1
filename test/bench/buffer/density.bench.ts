// The bytes that a point takes in cold segments, and the speed of writing and reading them.
// `[BENCH_OTHERS=DIR] node test/bench/buffer/density.bench.ts [FOLDER WITH CSV FILES]`

import { existsSync, readdirSync, readFileSync } from "node:fs";
import { cpus } from "node:os";
import { join } from "node:path";
import { constants, zstdCompressSync } from "node:zlib";
import { ByteReader, ByteWriter } from "../../../src/buffer/disk/files/bytes.ts";
import { SeriesSorter } from "../../../src/buffer/disk/format/columns.ts";
import { writeDenseColumns } from "../../../src/buffer/disk/format/dense-choice.ts";
import { readDenseColumns } from "../../../src/buffer/disk/format/dense-reader.ts";
import { InputTable } from "../../../src/buffer/disk/format/input-table.ts";
import { readPoints, readRecordHeader, recordBytes, SegmentEncoder } from "../../../src/buffer/disk/format/record.ts";
import type { InputId } from "../../../src/core/point.ts";
import { seeded } from "../../support/runtime.ts";
import { alpBits } from "./alp.ts";
import { gorillaBits } from "./gorilla.ts";
import { parquetBits } from "./parquet.ts";

const slab = 65_536;

interface Columns {
  readonly names: readonly string[];
  readonly times: Float64Array;
  /** One column per series. */
  readonly values: readonly Float64Array[];
}

/** Points in polling order: all series of one time, then of the next. */
function inOrder({ names, times, values }: Columns, inputs: InputTable) {
  const count = names.length * times.length;
  const points = {
    inputs: new Uint32Array(count),
    times: new Float64Array(count),
    values: new Float64Array(count),
    count,
  };
  const numbers = names.map((name) => inputs.numberOf(name as InputId));
  let at = 0;
  for (let t = 0; t < times.length; t++)
    for (let s = 0; s < names.length; s++) {
      points.inputs[at] = numbers[s]!;
      points.times[at] = times[t]!;
      points.values[at] = values[s]![t]!;
      at++;
    }
  return points;
}

function measure(columns: Columns) {
  const inputs = new InputTable();
  const points = inOrder(columns, inputs);
  const run = () => {
    const encoder = new SegmentEncoder(
      { salt: 1, isCold: true },
      { sorter: new SeriesSorter(), out: new ByteWriter() },
    );
    for (let at = 0; at < points.count; at += slab)
      encoder.encode(points, { from: at, to: Math.min(points.count, at + slab), late: false }, at, inputs);
    return encoder.out.written();
  };
  run();
  const started = performance.now();
  const bytes = run();
  const encodeMs = performance.now() - started;
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const read = () => {
    let count = 0;
    for (let at = 0; at < bytes.length; ) {
      const header = readRecordHeader(bytes, view, at, 1)!;
      if (header.type === 1) readPoints(bytes, at, header, (_, { length }) => (count += length));
      at += recordBytes(header.length);
    }
    return count;
  };
  read();
  const readStarted = performance.now();
  const count = read();
  const decodeMs = performance.now() - readStarted;
  if (count !== points.count) throw new Error("points are missing");
  return { bytesPerPoint: bytes.length / count, encode: count / encodeMs / 1e3, decode: count / decodeMs / 1e3 };
}

function polled(): Columns {
  const random = seeded(3);
  const ticks = 600;
  return {
    names: Array.from({ length: 1_000 }, (_, i) => `plant.line${i % 8}.tag${String(i).padStart(4, "0")}`),
    times: Float64Array.from({ length: ticks }, (_, i) => 1.767e15 + i * 1e6),
    values: Array.from({ length: 1_000 }, (_, i) => {
      let value = 20 + random() * 400;
      return Float64Array.from({ length: ticks }, () => {
        value += (random() - 0.5) * 0.4;
        return Math.round(value * 10 ** ((i % 3) + 1)) / 10 ** ((i % 3) + 1);
      });
    }),
  };
}

function fromCsv(file: string): Columns {
  const [head = "", ...lines] = readFileSync(file, "utf8").trim().split(/\r?\n/);
  const separator = head.includes(";") ? ";" : ",";
  const names = head.split(separator).slice(1);
  const rows = lines.map((line) => line.split(separator));
  const times = Float64Array.from(rows, ([time = ""]) => Date.parse(`${time.replace(" ", "T")}Z`) * 1_000);
  return { names, times, values: names.map((_, s) => Float64Array.from(rows, (row) => Number(row[s + 1]))) };
}

/** Reads a file of one number per line as a column without times. */
function columnOf(file: string): Float64Array {
  const cells = readFileSync(file, "utf8")
    .trim()
    .split(/\r?\n/)
    .map((line) => line.split(",").at(-1) ?? "");
  return Float64Array.from(
    cells.filter((cell) => cell !== "" && !Number.isNaN(Number(cell))),
    Number,
  );
}

/** The parts of a record of one series. */
function ofOneSeries(values: Float64Array) {
  const times = Float64Array.from({ length: values.length }, (_, i) => i);
  return { series: Uint32Array.of(0), starts: Uint32Array.of(0, values.length), seriesCount: 1, times, values };
}

const recordsOf = (values: Float64Array) =>
  Array.from({ length: Math.ceil(values.length / slab) }, (_, i) => values.slice(i * slab, (i + 1) * slab));

/** Bits per value of one column in records of 65,536 values. */
function measureColumn(values: Float64Array) {
  let [bits, zstd, alp] = [0, 0, 0];
  const out = new ByteWriter();
  const lengthOf = (part: Float64Array) => {
    out.cut();
    writeDenseColumns(out, ofOneSeries(part), 0);
    return out.length;
  };
  for (const part of recordsOf(values)) {
    // Subtracts the size of a column of zeros, which is that of the times.
    bits += (lengthOf(part) - lengthOf(new Float64Array(part.length))) * 8;
    const level = { params: { [constants.ZSTD_c_compressionLevel]: 19 } };
    zstd += zstdCompressSync(new Uint8Array(part.buffer), level).length * 8;
    alp += alpBits(part);
  }
  return { bits: bits / values.length, zstd: zstd / values.length, alp: alp / values.length };
}

/** Millions of values a second: the best of 40 runs of each record, which other load disturbs least. */
function measureRates(columns: readonly Float64Array[]) {
  const records = columns.flatMap(recordsOf).map((values) => ({ columns: ofOneSeries(values), out: new ByteWriter() }));
  const count = records.reduce((sum, { columns: { values } }) => sum + values.length, 0);
  const write = ({ columns: one, out }: (typeof records)[number]) => {
    out.cut();
    writeDenseColumns(out, one, 0);
  };
  const read = ({ out, columns: { values } }: (typeof records)[number]) => {
    let points = 0;
    readDenseColumns(new ByteReader(out.written()), 0, (_, { length }) => (points += length));
    if (points !== values.length) throw new Error("points are missing");
  };
  const rateOf = (work: typeof write) => {
    const best = new Float64Array(records.length).fill(Number.POSITIVE_INFINITY);
    for (let run = 0; run < 40; run++)
      for (const [i, record] of records.entries()) {
        const start = performance.now();
        work(record);
        best[i] = Math.min(best[i]!, performance.now() - start);
      }
    return count / 1e3 / best.reduce((sum, ms) => sum + ms, 0);
  };
  return { encode: rateOf(write), decode: rateOf(read) };
}

const format = (n: number) => n.toFixed(2);
console.log(`${cpus()[0]?.model ?? "unknown"}, ${cpus().length} cores, Node ${process.version}`);
const tags = measure(polled());
console.log(
  `1,000 tags at 1 Hz, one time, 1 to 3 decimals: ${format(tags.bytesPerPoint)} bytes a point, ${format(tags.encode)} M points/s written, ${format(tags.decode)} M points/s read`,
);

const folder = process.argv[2];
if (folder === undefined || !existsSync(folder)) console.log("no folder of CSV files given: real columns skipped");
else {
  const sums: number[] = [];
  const alone: Float64Array[] = [];
  /** Columns of which an alternative is more than 3 % smaller. */
  const behind: string[] = [];
  for (const name of readdirSync(folder).filter((entry) => entry.endsWith(".csv"))) {
    if (!readFileSync(join(folder, name), "utf8").includes(";")) {
      const column = columnOf(join(folder, name));
      const { bits, zstd, alp } = measureColumn(column);
      sums.push(bits);
      alone.push(column);
      const parquet = await parquetBits(column, slab);
      const least = Math.min(zstd, alp, parquet ?? Number.POSITIVE_INFINITY);
      if (bits > least * 1.03) behind.push(name);
      console.log(
        `${name}: ${format(bits)} bits a value; zstd-19 ${format(zstd)}, ALP ${format(alp)}, Parquet with zstd-19 ${parquet === undefined ? "not measured" : format(parquet)}`,
      );
      continue;
    }
    const columns = fromCsv(join(folder, name));
    let [ours, zstd, gorilla, count] = [0, 0, 0, 0];
    columns.values.forEach((values, s) => {
      const one = { names: [columns.names[s]!], times: columns.times, values: [values] };
      const zeros = { ...one, values: [new Float64Array(values.length)] };
      // The times are the same in both, so the difference is the size of the values.
      ours += (measure(one).bytesPerPoint - measure(zeros).bytesPerPoint) * values.length * 8;
      zstd +=
        zstdCompressSync(new Uint8Array(values.buffer), { params: { [constants.ZSTD_c_compressionLevel]: 19 } })
          .length * 8;
      gorilla += gorillaBits(values);
      count += values.length;
    });
    console.log(
      `${name}: ${format(ours / count)} bits a value; zstd-19 of the doubles ${format(zstd / count)}, Gorilla ${format(gorilla / count)}`,
    );
  }
  if (sums.length > 0) {
    const { encode, decode } = measureRates(alone);
    console.log(
      `mean of ${sums.length} columns: ${format(sums.reduce((a, b) => a + b) / sums.length)} bits a value; ${format(encode)} M values/s written, ${format(decode)} read`,
    );
    console.log(`columns more than 3 % above the best alternative: ${behind.join(", ") || "none"}`);
  }
}
