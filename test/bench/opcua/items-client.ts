// The measured side of the OPC UA bench: one source in its own process. Its argument is a `Load` as JSON.
import { readingCount } from "../../../src/lib/readings/reading-batch.ts";
import { opcuaDriver } from "../../../src/source/opcua/driver.ts";
import { loadStack } from "../../../src/source/opcua/stack/stack.ts";
import { testRuntime } from "../../support/runtime.ts";

interface Load {
  readonly port: number;
  readonly items: number;
  readonly everyMs: number;
  readonly seconds: number;
  readonly stateDir: string;
}
const load = JSON.parse(process.argv[2] ?? "{}") as Load; // passed by items.ts
const megabytes = () => Math.round(process.memoryUsage().rss / 1e6);
const stop = new AbortController();
const runtime = testRuntime();
const memory = { before: megabytes(), stack: 0, opened: 0, most: 0 };

let since = performance.now();
await loadStack(runtime.log);
const stackMs = Math.round(performance.now() - since);
memory.stack = megabytes();
since = performance.now();
const source = await opcuaDriver.open(
  {
    name: "bench",
    agent: "bench",
    stateDir: load.stateDir,
    options: opcuaDriver.schema.parse({ url: `opc.tcp://127.0.0.1:${load.port}`, security: { mode: "none" } }),
    tags: Array.from({ length: load.items }, (_, i) => ({
      node: `nsu=urn:tagferry:bench;s=V${i}`,
      every: load.everyMs,
    })),
  },
  runtime,
  stop.signal,
);
const openMs = Math.round(performance.now() - since);
memory.opened = megabytes();
const subscribed = runtime.lines.find(({ message }) => message === "subscribed");

since = performance.now();
let settled = since;
let cpu = process.cpuUsage();
let readings = 0;
let steady = 0;
let firstMs: number | undefined;
let describedMs: number | undefined;
setTimeout(() => stop.abort(), load.seconds * 1_000);
for await (const delivery of source.deliveries(stop.signal)) {
  const now = performance.now();
  const count = readingCount(delivery);
  if (count > 0) firstMs ??= Math.round(now - since);
  if (delivery.descriptions.length > 0) {
    describedMs ??= Math.round(now - since);
    // The measurement starts here.
    cpu = process.cpuUsage();
    settled = now;
    steady = 0;
  }
  readings += count;
  steady += count;
  memory.most = Math.max(memory.most, megabytes());
  delivery.ack();
}
const ms = performance.now() - settled;
const { user, system } = process.cpuUsage(cpu);
console.log({
  ...load,
  stackMs,
  openMs,
  subscribeMs: subscribed?.fields?.["ms"],
  describedMs,
  firstMs,
  readings,
  readingsPerSecond: Math.round((steady / ms) * 1_000),
  cpuPercent: Math.round((user + system) / ms) / 10,
  rssMB: { ...memory, end: megabytes() },
  lost: runtime.metric("source_opcua_lost_notifications_total"),
  ...source.details?.(),
});
await source[Symbol.asyncDispose]();
