// How fast the service starts with 90 million stored points, and the bytes of a point on disk, compared with DuckDB.
// `npm run build && [BENCH_OTHERS=DIR] node test/bench/service/storage.bench.ts [FOLDER ON A DISK] [MILLIONS] [FOLDER
// WITH CSV FILES]`
// `BENCH_OTHERS` is a folder that `test/bench/buffer/install-others.sh` has filled; without it DuckDB is omitted.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { cpus, loadavg } from "node:os";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { ServiceStore } from "../../../src/service/store/store.ts";
import { seeded } from "../../support/runtime.ts";
import { integration } from "../../support/service.ts";
import { cpuSeconds, median } from "../agent/process-usage.ts";
import { openDuckDb } from "../buffer/duck-db.ts";

const [parent = "/var/tmp", millions = "90", csvFolder] = process.argv.slice(2);
const entry = resolve(import.meta.dirname, "../../../dist/main.js");
if (!existsSync(entry)) throw new Error("run `npm run build` first");
const folder = mkdtempSync(join(parent, "tagferry-bench-"));
const random = seeded(3);
const rounds = 7;
const firstMicros = Date.UTC(2026, 0, 1) * 1_000;

/** A column of this many values, a second apart. */
type Column = (count: number) => Float64Array;

function walk(round: (value: number) => number): Column {
  return (count) => {
    let value = 20 + random() * 400;
    return Float64Array.from({ length: count }, () => round((value += (random() - 0.5) * 0.4)));
  };
}
const decimals = (power: number) => walk((value) => Math.round(value * power) / power);
const states: Column = (count) => {
  let state = 0;
  return Float64Array.from({ length: count }, () => (random() < 0.01 ? (state = Math.floor(random() * 6)) : state));
};
const counter: Column = (count) => {
  let sum = Math.floor(random() * 1e6);
  return Float64Array.from({ length: count }, () => (sum += Math.floor(random() * 4)));
};
/** Twenty signals: eight with decimals, four device floats, three states, two counters, three computed doubles. */
const mix: readonly Column[] = [
  ...[10, 10, 10, 100, 100, 100, 1_000, 1_000].map(decimals),
  ...Array.from({ length: 4 }, () => walk(Math.fround)),
  ...Array.from({ length: 3 }, () => states),
  ...Array.from({ length: 2 }, () => counter),
  ...Array.from({ length: 3 }, () => walk((value) => value)),
];

console.log(
  `${cpus()[0]?.model}, ${cpus().length} cores, Node ${process.version}, load ${loadavg()[0]?.toFixed(1)}, medians of ${rounds}`,
);
try {
  const few = Array.from({ length: 100 }, (_, s) => mix[s % mix.length]!(20_000));
  await density("a mix of 100 signals × 20,000 points", few);
  if (csvFolder !== undefined) await density(`columns of ${csvFolder}`, columnsOf(csvFolder));
  await starts(Number(millions) * 1e6);
} finally {
  rmSync(folder, { recursive: true, force: true });
}

async function density(what: string, columns: readonly Float64Array[]): Promise<void> {
  const points = columns.reduce((sum, { length }) => sum + length, 0);
  const ours = join(folder, "density");
  store(ours, columns);
  const figures = [`here ${(bytesOf(ours) / points).toFixed(2)}`];
  const duck = await duckBytes(columns);
  if (duck !== undefined) figures.push(`DuckDB ${(duck / points).toFixed(2)}`);
  console.log(`${what}, bytes a point: ${figures.join(", ")}`);
  rmSync(ours, { recursive: true });
}

/** Stores columns in runs of an hour, as inserts would. */
function store(data: string, columns: readonly Float64Array[]): void {
  using service = ServiceStore.open(data);
  service.transaction(() => {
    for (const [s, values] of columns.entries()) {
      const { number } = service.resources.createSignal(integration, `line1.t${s}`, { name: `t${s}` } as never, 0);
      for (let at = 0; at < values.length; at += 3_600) {
        const part = values.subarray(at, at + 3_600);
        const times = Float64Array.from(part, (_, i) => firstMicros + (at + i) * 1e6);
        service.points.write(number, { times, values: part });
      }
    }
  });
}

/** The size of a table by signal and time after a checkpoint. */
async function duckBytes(columns: readonly Float64Array[]): Promise<number | undefined> {
  const path = join(folder, "others.duckdb");
  const instance = await openDuckDb(path);
  if (!instance) return undefined;
  const connection = await instance.connect();
  await connection.run("CREATE TABLE point (signal INTEGER, micros BIGINT, value DOUBLE)");
  const appender = await connection.createAppender("point");
  for (const [s, values] of columns.entries())
    for (let i = 0; i < values.length; i++) {
      appender.appendInteger(s);
      appender.appendBigInt(BigInt(firstMicros) + BigInt(i) * 1_000_000n);
      appender.appendDouble(values[i]!);
      appender.endRow();
    }
  appender.closeSync();
  await connection.run("CHECKPOINT");
  connection.closeSync();
  instance.closeSync();
  const { size } = statSync(path);
  rmSync(path);
  return size;
}

async function starts(points: number): Promise<void> {
  const signals = 1_000;
  const [empty, full] = [join(folder, "empty"), join(folder, "full")];
  ServiceStore.open(empty)[Symbol.dispose]();
  const began = performance.now();
  // New columns of the same kinds, because signals that differ only in their start would compress too well.
  const columns = mix.map((column) => column(points / signals));
  store(
    full,
    Array.from({ length: signals }, (_, s) => columns[s % columns.length]!),
  );
  console.log(
    `${points / 1e6} million points in ${signals} signals: ${(bytesOf(full) / points).toFixed(2)} bytes a point, stored in ${((performance.now() - began) / 1e3).toFixed(0)} s`,
  );
  const times = { empty: [] as Start[], full: [] as Start[] };
  for (let round = 0; round < rounds; round++) {
    times.empty.push(await start(empty));
    times.full.push(await start(full));
  }
  for (const [name, all] of Object.entries(times))
    console.log(
      `start, ${name}: ready after ${median(all.map(({ ms }) => ms)).toFixed(0)} ms, ${median(all.map(({ cpuMs }) => cpuMs)).toFixed(0)} ms of CPU`,
    );
}

interface Start {
  readonly ms: number;
  readonly cpuMs: number;
}

async function start(data: string): Promise<Start> {
  const flags = ["--listen", "127.0.0.1:0", "--data", data, "--integration", integration, "--password", "secret"];
  const began = performance.now();
  const child = spawn(process.execPath, [entry, "service", ...flags], { stdio: ["ignore", "pipe", "pipe"] });
  const ended = once(child, "exit");
  for await (const line of createInterface({ input: child.stderr })) if (line.includes("service is open")) break;
  const ms = performance.now() - began;
  const cpuMs = cpuSeconds(child.pid!) * 1_000;
  child.kill("SIGKILL");
  await ended;
  return { ms, cpuMs };
}

/** Columns of numbers in CSV files. With commas as separators, the last number of each row. */
function columnsOf(path: string): Float64Array[] {
  return readdirSync(path)
    .filter((name) => name.endsWith(".csv"))
    .flatMap((name) => {
      const lines = readFileSync(join(path, name), "utf8").trim().split(/\r?\n/);
      const rows = lines.map((line) => line.split(/[;,]/));
      const first = lines[0]?.includes(";") ? 1 : Math.max(0, (rows[0]?.length ?? 1) - 1);
      return (rows[0] ?? []).slice(first).map((_, s) =>
        Float64Array.from(
          rows.map((row) => row[first + s] ?? "").filter((cell) => cell !== "" && !Number.isNaN(Number(cell))),
          Number,
        ),
      );
    })
    .filter(({ length }) => length > 0);
}

function bytesOf(path: string): number {
  return readdirSync(path).reduce((sum, name) => sum + statSync(join(path, name)).size, 0);
}
