// Durable ingest compared with common alternatives: `node:sqlite` with WAL and synchronous=FULL, `classic-level` with
// sync, `lmdb`. For each commit size: points a second, and bytes written to the block device per byte of points (20
// bytes per point for every engine). The engines take turns, five each, and the median counts, because the machine may
// be shared.
// Run: [BENCH_OTHERS=FOLDER] node test/bench/buffer/append.bench.ts [FOLDER ON A DISK] [SECONDS EACH] [COMMIT SIZES]
// `install-others.sh FOLDER` installs the last two; without it they are omitted.
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { cpus, loadavg } from "node:os";
import { basename, join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { openDiskBuffer } from "../../../src/buffer/disk/disk-buffer.ts";
import { bufferOptions } from "../../../src/buffer/disk/options.ts";
import { epochMicros, type InputId, type Point } from "../../../src/core/point.ts";
import { seeded, testRuntime } from "../../support/runtime.ts";

const [parent = "/var/tmp", seconds = "5", sizes = "1,100,1000"] = process.argv.slice(2);
const turns = 5;
const turnMs = (Number(seconds) * 1_000) / turns;
const requireOther = createRequire(`${process.env.BENCH_OTHERS ?? import.meta.dirname}/`);
const never = new AbortController().signal;
const random = seeded(5);
const tags = Array.from({ length: 1_000 }, (_, i) => `plant.line${i % 8}.tag${String(i).padStart(4, "0")}` as InputId);
let tick = 0;

/** In polling order: all tags of one time, then of the next. */
function points(count: number): Point[] {
  return Array.from({ length: count }, () => {
    const n = tick++;
    const time = epochMicros(1.767e15 + Math.floor(n / 1_000) * 1e6);
    return { input: tags[n % 1_000]!, time, value: Math.round(random() * 1e5) / 10 ** ((n % 3) + 1) };
  });
}

interface Engine extends AsyncDisposable {
  append(points: readonly Point[]): Promise<void> | void;
}

async function ours(folder: string): Promise<Engine> {
  const config = bufferOptions.parse({ ackDelay: "0", reserveFreeDisk: "0" });
  const buffer = await openDiskBuffer(
    { directory: join(folder, "buffer"), integration: "bench", config },
    testRuntime(),
    never,
  );
  return {
    append: (list) => buffer.append(list, { awaited: true }, never),
    [Symbol.asyncDispose]: () => buffer[Symbol.asyncDispose](),
  };
}

/** 20 bytes a point: number of the tag, time, value. */
function packed(list: readonly Point[]): Uint8Array {
  const bytes = new Uint8Array(list.length * 20);
  const view = new DataView(bytes.buffer);
  list.forEach(({ time, value }, i) => {
    view.setUint32(i * 20, i % 1_000, true);
    view.setFloat64(i * 20 + 4, time, true);
    view.setFloat64(i * 20 + 12, value, true);
  });
  return bytes;
}

async function sqlite(folder: string): Promise<Engine> {
  const database = new DatabaseSync(join(folder, "points.db"));
  database.exec(
    "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; CREATE TABLE batch (id INTEGER PRIMARY KEY, points BLOB)",
  );
  const insert = database.prepare("INSERT INTO batch (points) VALUES (?)");
  return {
    append: (list) => void insert.run(packed(list)),
    [Symbol.asyncDispose]: async () => database.close(),
  };
}

interface Level {
  put(key: string, value: Uint8Array, options: { sync: boolean }): Promise<void>;
  close(): Promise<void>;
}
async function level(folder: string): Promise<Engine> {
  const { ClassicLevel } = requireOther("classic-level") as {
    ClassicLevel: new (path: string, options: object) => Level;
  };
  const store = new ClassicLevel(join(folder, "level"), { valueEncoding: "view" });
  let id = 0;
  return {
    append: (list) => store.put(String(id++).padStart(12, "0"), packed(list), { sync: true }),
    [Symbol.asyncDispose]: () => store.close(),
  };
}

interface Lmdb {
  put(key: number, value: Uint8Array): Promise<boolean>;
  flushed: Promise<boolean>;
  close(): Promise<void>;
}
async function lmdb(folder: string): Promise<Engine> {
  const { open } = requireOther("lmdb") as { open: (options: object) => Lmdb };
  const store = open({ path: join(folder, "lmdb"), encoding: "binary", mapSize: 4 * 2 ** 30 });
  let id = 0;
  return {
    append: async (list) => {
      await store.put(id++, packed(list));
      await store.flushed;
    },
    [Symbol.asyncDispose]: () => store.close(),
  };
}

/** Bytes written to the device of `folder` since the system started. */
function deviceBytes(folder: string): number {
  execFileSync("sync");
  const device = basename(execFileSync("findmnt", ["-no", "SOURCE", "-T", folder]).toString().trim());
  return Number(readFileSync(`/sys/class/block/${device}/stat`, "utf8").trim().split(/\s+/)[6]) * 512;
}

console.log(`${cpus()[0]?.model ?? "unknown"}, ${cpus().length} cores, Node ${process.version}, ${parent}`);
const engines = { tagferry: ours, "node:sqlite FULL": sqlite, "classic-level sync": level, lmdb };

interface Turns {
  readonly name: string;
  readonly engine: Engine;
  readonly rates: number[];
  commits: number;
  written: number;
}

async function takeTurn(turn: Turns, size: number): Promise<void> {
  const before = deviceBytes(parent);
  let count = 0;
  const started = performance.now();
  while (performance.now() - started < turnMs) {
    await turn.engine.append(points(size));
    count += size;
    turn.commits++;
  }
  turn.rates.push((count / (performance.now() - started)) * 1e3);
  turn.written += deviceBytes(parent) - before;
}

for (const size of sizes.split(",").map(Number)) {
  const folder = mkdtempSync(join(parent, "tagferry-bench-"));
  try {
    await using open = new AsyncDisposableStack();
    const all: Turns[] = [];
    for (const [name, openEngine] of Object.entries(engines))
      try {
        const home = mkdtempSync(join(folder, "engine-"));
        all.push({ name, engine: open.use(await openEngine(home)), rates: [], commits: 0, written: 0 });
      } catch (error) {
        const why = error instanceof Error ? error.message.split("\n")[0] : String(error);
        console.log(`${size} a commit, ${name}: skipped, ${why}`);
      }
    for (const { engine } of all) for (let i = 0; i < 200; i++) await engine.append(points(size));
    for (let i = 0; i < turns; i++) for (const turn of all) await takeTurn(turn, size);
    for (const { name, rates, commits, written } of all) {
      const [least = 0, , median = 0, , most = 0] = rates.toSorted((a, b) => a - b).map(Math.round);
      console.log(
        `${size} a commit, ${name}: ${median} points/s (${least} to ${most}), ${Math.round(written / commits)} bytes a commit, ${(written / (commits * size * 20)).toFixed(2)} bytes per byte of points`,
      );
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
console.log(`load ${loadavg()[0]?.toFixed(1)}`);
