// The cost of recording settlements: one request a second, with and without it, each on its own ext4 on a loop device
// (root). Bytes at the device and processor time of appends, settlements and ticks together.
// Run: node test/bench/buffer/settle.bench.ts [SECONDS] [SERIES] [SERIES LEFT OUT OF EACH SETTLEMENT]
import { execFileSync } from "node:child_process";
import { randomInt } from "node:crypto";
import { readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { nodeDisk } from "../../../src/buffer/disk/files/disk.ts";
import { openSegmentStore } from "../../../src/buffer/disk/log/store.ts";
import type { InputId } from "../../../src/core/point.ts";
import { loopVolume } from "../../support/loop-volume.ts";

const [seconds = 60, series = 100, leftOut = 2] = process.argv.slice(2).map(Number);
const now = () => ({ wall: Date.now() * 1_000, monotonic: performance.now() });
const names = Array.from({ length: series }, (_, i) => `plant.tag${i}` as InputId);

function open(write: boolean) {
  const volume = loopVolume("ext4");
  const options = {
    folder: join(volume.path, "buffer"),
    integration: "bench",
    maxSize: 2 ** 27,
    maxAgeMs: 1e9,
    reserveFreeDisk: 0,
    whenFull: "dropOldest",
    segmentBytes: 2 ** 21,
  } as const;
  const disk = nodeDisk();
  disk.makeFolder(options.folder);
  const random32 = () => randomInt(2 ** 32);
  const store = openSegmentStore(options, { disk, random32, note: () => {} }, now());
  return { write, volume, store, cpuMs: 0, settleMs: 0, started: 0 };
}

function deviceBytes(folder: string): number {
  execFileSync("sync", ["-f", folder]);
  const device = basename(execFileSync("findmnt", ["-no", "SOURCE", "-T", folder]).toString().trim());
  return Number(readFileSync(`/sys/class/block/${device}/stat`, "utf8").trim().split(/\s+/)[6]) * 512;
}

function second({ store, write }: ReturnType<typeof open>, tick: number): number {
  const points = {
    inputs: Uint32Array.from(names, (name) => store.inputs.numberOf(name)),
    times: new Float64Array(series).fill(1.767e15 + tick * 1e6),
    values: Float64Array.from(names, () => randomInt(1_000) / 10),
    count: series,
  };
  store.append(points, now());
  const { block } = store.take({ lane: "live", maxPoints: series });
  const before = performance.now();
  // Some series stay unsettled, like those that the service refuses for now.
  if (block) store.settle([{ block: block.id, inputs: block.inputs.slice(leftOut), refused: 0 }], write);
  const settleMs = performance.now() - before;
  if (tick % 2 === 0) store.tick(now());
  return settleMs;
}

const runs = [open(false), open(true)];
try {
  for (const run of runs) for (let i = 0; i < 10; i++) second(run, -100 + i);
  for (const run of runs) run.started = deviceBytes(run.volume.path);
  for (let tick = 0; tick < seconds; tick++) {
    for (const run of runs) {
      const before = process.cpuUsage();
      run.settleMs += second(run, tick);
      const { user, system } = process.cpuUsage(before);
      run.cpuMs += (user + system) / 1_000;
    }
    await sleep(1_000);
  }
  for (const { write, volume, started, cpuMs, settleMs } of runs) {
    const rate = (deviceBytes(volume.path) - started) / seconds;
    console.log(
      `${write ? "each settlement written" : "every 5 s alone        "}: ${Math.round(rate)} bytes/s at the device, ${(cpuMs / seconds / 10).toFixed(2)} % of a core, ${(settleMs / seconds).toFixed(2)} ms a settlement`,
    );
  }
} finally {
  for (const { store, volume } of runs) {
    store.close(now());
    volume[Symbol.dispose]();
  }
}
