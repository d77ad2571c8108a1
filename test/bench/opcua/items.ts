// What the OPC UA source costs: node test/bench/opcua/items.ts [items] [interval in ms] [seconds]. The server runs beside it.
import { spawn } from "node:child_process";
import { cpus } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { opcuaDriver } from "../../../src/source/opcua/driver.ts";
import { testRuntime } from "../../support/runtime.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";

const [items = 10_000, everyMs = 1_000, seconds = 20] = process.argv.slice(2).map(Number);
using folder = temporaryFolder();
const server = spawn(
  process.execPath,
  [join(import.meta.dirname, "server.ts"), folder.file("server"), String(items), String(everyMs)],
  { stdio: ["pipe", "pipe", "inherit"] },
);
const ready = await new Promise<string>((resolve) => createInterface(server.stdout).once("line", resolve));
const { port } = JSON.parse(ready) as { port: number }; // our own script's words
const stop = new AbortController();
const runtime = testRuntime();
const tags = Array.from({ length: items }, (_, i) => ({ node: `nsu=urn:tagferry:bench;s=V${i}`, every: everyMs }));
const cpuPercent = (since: NodeJS.CpuUsage, ms: number) => {
  const { user, system } = process.cpuUsage(since);
  return Math.round((user + system) / ms) / 10;
};

const opening = performance.now();
const source = await opcuaDriver.open(
  {
    name: "bench",
    agent: "bench",
    stateDir: folder.file("state"),
    options: opcuaDriver.schema.parse({ url: `opc.tcp://127.0.0.1:${port}`, security: { mode: "none" } }),
    tags,
  },
  runtime,
  stop.signal,
);
const openMs = Math.round(performance.now() - opening);

const start = performance.now();
const cpu = process.cpuUsage();
let readings = 0;
let deliveries = 0;
setTimeout(() => stop.abort(), seconds * 1_000);
for await (const delivery of source.deliveries(stop.signal)) {
  readings += delivery.readings.length;
  deliveries++;
  delivery.ack();
}
const ms = performance.now() - start;
console.log({
  machine: `${cpus().length} x ${cpus()[0]?.model}, Node ${process.version}`,
  items,
  everyMs,
  openMs,
  readingsPerSecond: Math.round((readings / ms) * 1_000),
  deliveries,
  cpuPercent: cpuPercent(cpu, ms),
  rssMB: Math.round(process.memoryUsage().rss / 1e6),
  lost: runtime.metric("opcua_lost_notifications_total"),
  ...source.details?.(),
});
await source[Symbol.asyncDispose]();
server.stdin.end();
