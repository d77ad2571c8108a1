// Time to open, and resident memory, with a backlog of 10 GiB: 1,280 sealed segments of 8 MiB, and a newest one as a
// crash leaves it soon after its start. Each sealed segment holds 8,000 points at its beginning and its totals at its
// end; between them is a hole, so that the bench takes less than a minute. A start reads the beginning and the end of a
// sealed segment, and those are real. It reads the whole newest sealed segment to find duplicates, and that one is
// full. Then a folder as 64 consecutive restarts leave it, each after 1,000 points.
// Run: node --max-semi-space-size=4 test/bench/buffer/open.bench.ts [SEGMENTS] [FOLDER ON A DISK]
import {
  closeSync,
  fstatSync,
  ftruncateSync,
  mkdtempSync,
  openSync,
  readFileSync,
  readSync,
  rmSync,
  writeSync,
} from "node:fs";
import { cpus, loadavg } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { openDiskBuffer } from "../../../src/buffer/disk/disk-buffer.ts";
import { nodeDisk } from "../../../src/buffer/disk/files/disk.ts";
import { openSegmentStore, type Store } from "../../../src/buffer/disk/log/store.ts";
import { bufferOptions } from "../../../src/buffer/disk/options.ts";
import { sealBytes } from "../../../src/buffer/disk/segments/segment-writer.ts";
import { group, moment, type Triple } from "../../support/disk-store.ts";
import { seeded, testRuntime } from "../../support/runtime.ts";

/** Consecutive starts, each of which leaves a small segment. */
const manyStarts = 64;
const [segments = "1280", parent = "/var/tmp"] = process.argv.slice(2);
const fullBytes = 8 * 2 ** 20;
const never = new AbortController().signal;
const random = seeded(2);
const config = bufferOptions.parse({ reserveFreeDisk: "0", maxSize: "16GiB" });

function rssMb(): number {
  return Number(/VmRSS:\s+(\d+)/.exec(readFileSync("/proc/self/status", "utf8"))?.[1]) / 1_024;
}

function writer(folder: string) {
  const disk = nodeDisk();
  disk.makeFolder(folder);
  const options = {
    folder,
    integration: "bench",
    maxSize: 2 ** 34,
    maxAgeMs: 1e12,
    reserveFreeDisk: 0,
    whenFull: "dropOldest",
  } as const;
  // No data has to survive a power cut here.
  const open = disk.open.bind(disk);
  const environment = {
    disk: {
      ...disk,
      syncFolder() {},
      open: (path: string, mode: "create" | "write" | "read") => ({ ...open(path, mode), sync() {} }),
    },
    random32: () => Math.floor(random() * 2 ** 32),
    note() {},
  };
  let tick = 0;
  const poll = (ticks: number): Triple[] =>
    Array.from({ length: ticks * 1_000 }, (_, i) => [
      `plant.line.tag${i % 1_000}`,
      1.767e15 + (tick + Math.floor(i / 1_000)) * 1e6,
      Math.round(random() * 1e5) / 100,
    ]);
  return {
    open: (segmentBytes: number, at: number) => openSegmentStore({ ...options, segmentBytes }, environment, moment(at)),
    append: (store: Store, ticks: number, at: number) => {
      store.append(group(store, poll(ticks)), moment(at));
      tick += ticks;
    },
    names: () => disk.list(folder),
  };
}

/** `count` sealed segments, the newest one full, then one that ends as a crash leaves it. */
function fill(folder: string, count: number): void {
  const { open, append, names } = writer(folder);
  const small = open(100_000, 0);
  while (small.stats().segments < count) append(small, 8, 1);
  small.close(moment(2));
  for (const name of names()) if (name.startsWith("seg-")) enlarge(join(folder, name));
  const last = open(fullBytes, 3);
  while (last.stats().segments < count + 2) append(last, 8, 4);
}

/** Starts this many times. Each start ends with a crash after 1,000 points. */
function restart(folder: string, starts: number): void {
  const { open, append } = writer(folder);
  for (let start = 0; start < starts; start++) append(open(fullBytes, start), 1, start);
}

/** Moves the totals to their position in a segment of full length. */
function enlarge(path: string): void {
  const file = openSync(path, "r+");
  const seal = new Uint8Array(sealBytes);
  readSync(file, seal, 0, sealBytes, fstatSync(file).size - sealBytes);
  ftruncateSync(file, fullBytes);
  writeSync(file, seal, 0, sealBytes, fullBytes - sealBytes);
  closeSync(file);
}

console.log(`${cpus()[0]?.model ?? "unknown"}, ${cpus().length} cores, Node ${process.version}, ${parent}`);
const [mode, prepared] = [process.env.BENCH_MODE, process.env.BENCH_FOLDER];
if (mode === undefined) {
  const { spawnSync } = await import("node:child_process");
  for (const count of [0, Number(segments), -manyStarts]) {
    const home = mkdtempSync(join(parent, "tagferry-bench-"));
    try {
      if (count > 0) fill(join(home, "buffer"), count);
      if (count < 0) restart(join(home, "buffer"), -count);
      const env = { ...process.env, BENCH_MODE: String(count), BENCH_FOLDER: join(home, "buffer") };
      spawnSync(process.execPath, [...process.execArgv, import.meta.filename], { env, stdio: "inherit" });
    } finally {
      rmSync(home, { recursive: true, force: true });
    }
  }
} else {
  const before = rssMb();
  const started = performance.now();
  const cpuBefore = process.cpuUsage();
  const buffer = await openDiskBuffer(
    { directory: prepared ?? "", integration: "bench", config },
    testRuntime(),
    never,
  );
  const openMs = performance.now() - started;
  const cpu = process.cpuUsage(cpuBefore);
  await sleep(3_000);
  const { segments: found, unsettledPoints, bytes } = buffer.stats();
  console.log(
    `${found} segments, ${unsettledPoints} points, ${(bytes / 2 ** 20).toFixed(0)} MiB: open in ${openMs.toFixed(0)} ms (${((cpu.user + cpu.system) / 1_000).toFixed(0)} ms of CPU), resident ${before.toFixed(0)} → ${rssMb().toFixed(0)} MB, load ${loadavg()[0]?.toFixed(1)}`,
  );
  await buffer[Symbol.asyncDispose]();
}
