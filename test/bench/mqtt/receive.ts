// What the MQTT source itself costs: messages received from mosquitto at an even pace, decoded, given out and
// acknowledged after a commit that takes as long as asked. `node test/bench/mqtt/receive.ts [rate] [topics] [commit ms] [seconds] [qos]`
import { spawn } from "node:child_process";
import { openMosquitto } from "../../support/mosquitto.ts";
import { openMqttSource } from "../../support/mqtt-source.ts";
import { testRuntime } from "../../support/runtime.ts";

const [rate = 10_000, topics = 1_000, commitMs = 5, seconds = 10, qos = 1] = process.argv.slice(2).map(Number);
const { signal } = new AbortController();
const abort = new AbortController();
await using broker = await openMosquitto();
const { url, username, password } = broker;
const options = { url, username, password, qos, session: { persistent: qos > 0 } };
const tags = [{ topic: "plant/{line}/{machine}/temp", value: "$.v", time: { at: "$.ts", format: "unixMs" } }];
const runtime = testRuntime();
await using source = await openMqttSource({ options, tags }, runtime, signal);
const publisher = spawn(
  process.execPath,
  [new URL("publisher.ts", import.meta.url).pathname, url, username, password, rate, topics, seconds, qos].map(String),
  { stdio: "inherit" },
);
const total = rate * seconds;
const latencies: number[] = [];
let seen = 0;
let deliveries = 0;
let begin = 0;
let cpu = process.cpuUsage();
const deadline = setTimeout(() => abort.abort(), (seconds + 20) * 1_000);
const ended = new Promise<void>((resolve) => publisher.once("exit", () => setTimeout(resolve, 1_500)));
void ended.then(() => abort.abort());
for await (const delivery of source.deliveries(abort.signal)) {
  if (begin === 0) {
    begin = performance.now();
    cpu = process.cpuUsage();
  }
  deliveries++;
  seen += delivery.readings.length;
  const last = delivery.readings.at(-1);
  await new Promise((resolve) => setTimeout(resolve, commitMs));
  delivery.ack();
  if (last) latencies.push(Date.now() - last.time / 1_000);
  if (seen >= total) break;
}
const wall = performance.now() - begin;
const { user, system } = process.cpuUsage(cpu);
latencies.sort((a, b) => a - b);
clearTimeout(deadline);
console.log(
  JSON.stringify({
    seen,
    lost: total - seen,
    perSecond: Math.round(seen / (wall / 1_000)),
    cpuPercent: Math.round(((user + system) / 1_000 / wall) * 100),
    microsPerMessage: Number(((user + system) / seen).toFixed(1)),
    userMicros: Number((user / seen).toFixed(1)),
    deliveries,
    latencyP50: latencies[Math.floor(latencies.length / 2)],
    latencyP99: latencies[Math.floor(latencies.length * 0.99)],
    rssMB: Math.round(process.memoryUsage.rss() / 1e6),
  }),
);
