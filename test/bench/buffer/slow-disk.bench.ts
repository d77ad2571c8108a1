// The event loop while every sync takes long: 5,000 points a second in appends of one point, each awaited by a device.
// Run: node test/bench/buffer/slow-disk.bench.ts [MILLISECONDS A SYNC] [SECONDS]
import { cpus } from "node:os";
import { monitorEventLoopDelay } from "node:perf_hooks";
import { setTimeout as sleep } from "node:timers/promises";
import { openDiskBuffer } from "../../../src/buffer/disk/disk-buffer.ts";
import { bufferOptions } from "../../../src/buffer/disk/options.ts";
import { startLogWorker, workerPorts } from "../../../src/buffer/disk/worker/worker-port.ts";
import { epochMicros, type InputId } from "../../../src/core/point.ts";
import { testRuntime } from "../../support/runtime.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";

const [syncMs = "200", seconds = "10"] = process.argv.slice(2);
process.env.SLOW_SYNC_MS = syncMs;
const never = new AbortController().signal;
using home = temporaryFolder();
const config = bufferOptions.parse({ reserveFreeDisk: "0" });
const worker = new URL("../../support/slow-disk-worker.ts", import.meta.url);
const options = { directory: home.file("buffer"), integration: "bench", config };
const buffer = await openDiskBuffer(options, testRuntime(), never, (start, signal) =>
  workerPorts(startLogWorker(worker))(start, signal),
);

const delay = monitorEventLoopDelay({ resolution: 5 });
delay.enable();
const latencies: number[] = [];
const started = performance.now();
for (let i = 0; performance.now() - started < Number(seconds) * 1_000; ) {
  for (let k = 0; k < 25; k++, i++) {
    const appended = performance.now();
    const point = { input: `tag${i % 100}` as InputId, time: epochMicros(1.767e15 + i * 200), value: i / 4 };
    void buffer.append([point], { awaited: true }, never).then(() => latencies.push(performance.now() - appended));
  }
  await sleep(5);
}
delay.disable();
await buffer[Symbol.asyncDispose]();
latencies.sort((a, b) => a - b);
const at = (part: number) => (latencies[Math.floor(latencies.length * part)] ?? 0).toFixed(0);
console.log(`${cpus()[0]?.model ?? "unknown"}, ${cpus().length} cores, Node ${process.version}`);
console.log(
  `every sync ${syncMs} ms longer: event loop p99 ${(delay.percentile(99) / 1e6 - 5).toFixed(1)} ms late; ${latencies.length} appends acknowledged, after ${at(0.5)} ms (p50), ${at(0.99)} ms (p99)`,
);
