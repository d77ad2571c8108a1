// The cost of the whole agent with MQTT QoS 1: idle, at its start, and at a steady load. mosquitto is the broker, and
// the local service runs in its own process. mosquitto_sub with the same load is the lower bound.
// `node test/bench/agent/agent.bench.ts [messages a second] [seconds] [topics] [program]`
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, statSync } from "node:fs";
import { cpus } from "node:os";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { startAgent } from "../../support/agent-process.ts";
import { eventually } from "../../support/eventually.ts";
import { openMosquitto } from "../../support/mosquitto.ts";
import { integration, password } from "../../support/service.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";
import { ackMeter } from "./ack-meter.ts";
import { cpuSeconds, median, memory, quantile } from "./process-usage.ts";

const root = resolve(import.meta.dirname, "../../..");
const [rateText = "10000", secondsText = "30", topicsText = "1000", program] = process.argv.slice(2);
const rate = Number(rateText);
const seconds = Number(secondsText);
const bundled = join(root, "dist/main.js");
const entry = program ?? (existsSync(bundled) ? bundled : join(root, "src/cli/main.ts"));

using folder = temporaryFolder();
await using broker = await openMosquitto();
await using meter = await ackMeter(broker.port);
const service = await startService();
console.log(
  `${cpus()[0]?.model}, ${cpus().length} cores, Node ${process.version}, ${entry.endsWith(".ts") ? "from source" : "bundled"}`,
);

const options = {
  folder: folder.path,
  entry,
  configuration: `version: 1
agent: { name: bench, dataDir: ${JSON.stringify(folder.file("data"))} }
service: { url: "${service.url}", integration: ${integration}, auth: { basic: { password: "${password}" } } }
http: { listen: "127.0.0.1:0" }
sources:
  plant:
    type: mqtt
    url: mqtt://127.0.0.1:${meter.port}
    username: ${broker.username}
    password: ${broker.password}
    tags:
      - { input: "{line}.{tag}", topic: "plant/{line}/{tag}", value: $.v, time: { at: $.ts, format: unixMs } }
`,
};

// Started a few times: the first start fills the compile cache.
const starts: number[] = [];
for (let i = 0; i < 4; i++) {
  const began = performance.now();
  await using agent = await startAgent(options);
  await eventually(async () => (await agent.status()).sources[0]?.state === "online");
  const publisher = await broker.publisher();
  await publisher.publishAsync("plant/line00/start", JSON.stringify({ ts: Date.now(), v: i }), { qos: 1 });
  await eventually(async () => (await agent.status()).buffer.appendedPoints > i);
  starts.push(performance.now() - began);
  await agent.stop();
}
console.log(
  `start to first point on disk: ${median(starts.slice(1)).toFixed(0)} ms (first start ${starts[0]?.toFixed(0)} ms)`,
);

await using agent = await startAgent(options);
await eventually(async () => (await agent.status()).sources[0]?.state === "online");
await new Promise((done) => setTimeout(done, 10_000));
console.log(`idle: ${memory(agent.pid).rss.toFixed(0)} MB resident`);

const load = spawn(
  process.execPath,
  [
    join(import.meta.dirname, "mqtt-load.ts"),
    String(broker.port),
    broker.username,
    broker.password,
    rateText,
    topicsText,
    String(seconds + 4),
  ],
  {
    stdio: ["ignore", "inherit", "inherit"],
  },
);
const loaded = once(load, "exit");
await new Promise((done) => setTimeout(done, 3_000));
meter.takeLatencies();
const cpuBefore = cpuSeconds(agent.pid);
const began = performance.now();
const pointsBefore = (await agent.status()).buffer.appendedPoints;
const rss: number[] = [];
const lags: number[] = [];
while (performance.now() - began < seconds * 1_000) {
  await new Promise((done) => setTimeout(done, 500));
  rss.push(memory(agent.pid).rss);
  lags.push((await agent.status()).upload.lagMs ?? Number.NaN);
}
const elapsed = (performance.now() - began) / 1_000;
const cpu = (cpuSeconds(agent.pid) - cpuBefore) / elapsed;
const status = await agent.status();
const latencies = meter.takeLatencies();
const points = status.buffer.appendedPoints - pointsBefore;
console.log(
  `${rate} messages/s, ${topicsText} topics: ${(points / elapsed).toFixed(0)} points/s on disk, ${(cpu * 100).toFixed(0)} % of a core (${((cpu * 1e6 * elapsed) / points).toFixed(1)} µs a message), ` +
    `${median(rss).toFixed(0)} MB (most ${Math.max(...rss).toFixed(0)}), acknowledged after ${median(latencies).toFixed(1)} ms, p99 ${quantile(latencies, 0.99).toFixed(1)} ms, most ${Math.max(...latencies.slice(-50_000)).toFixed(0)} ms`,
);
console.log(`upload: ${JSON.stringify(status.upload)}, lag median ${median(lags).toFixed(0)} ms`);
await loaded;
await eventually(async () => (await agent.status()).buffer.unsettledPoints === 0, 60_000);
console.log(
  `drained; duplicates ${(await agent.status()).buffer.duplicatePoints}, collided ${(await agent.status()).buffer.collidedPoints}`,
);
await agent.stop();
service.process.kill("SIGTERM");

async function startService(): Promise<{ readonly url: string; readonly process: ReturnType<typeof spawn> }> {
  const data = folder.file("service");
  mkdirSync(data);
  statSync(data);
  const child = spawn(
    process.execPath,
    [
      join(root, "src/cli/main.ts"),
      "service",
      "--listen",
      "127.0.0.1:0",
      "--data",
      data,
      "--integration",
      integration,
      "--password",
      password,
      "--grant",
      "admin,platform",
    ],
    {
      stdio: ["ignore", "pipe", "ignore"],
    },
  );
  const [line] = (await once(createInterface({ input: child.stdout }), "line")) as [string];
  return { url: line.replace(/^service\s+/, ""), process: child };
}
