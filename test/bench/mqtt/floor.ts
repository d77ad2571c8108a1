// What receiving costs at least, beside receive.ts: the bare library, which acknowledges at once and counts, with the
// same load. `node test/bench/mqtt/floor.ts [rate] [topics] [seconds] [qos]`
import { spawn } from "node:child_process";
import { connectAsync } from "mqtt";
import { openMosquitto } from "../../support/mosquitto.ts";

const [rate = 10_000, topics = 1_000, seconds = 10, qos = 1] = process.argv.slice(2).map(Number);
await using broker = await openMosquitto();
const { url, username, password } = broker;
const client = await connectAsync(url, {
  username,
  password,
  protocolVersion: 5,
  properties: { receiveMaximum: 2_000 },
});
await client.subscribeAsync("plant/#", { qos: qos === 0 ? 0 : 1 });
const total = rate * seconds;
let seen = 0;
let begin = 0;
let cpu = process.cpuUsage();
const all = new Promise<void>((resolve) => {
  client.on("message", () => {
    if (seen === 0) {
      begin = performance.now();
      cpu = process.cpuUsage();
    }
    if (++seen >= total) resolve();
  });
});
const publisher = spawn(
  process.execPath,
  [new URL("publisher.ts", import.meta.url).pathname, url, username, password, rate, topics, seconds, qos].map(String),
  { stdio: "inherit" },
);
const ended = new Promise<void>((resolve) => publisher.once("exit", () => setTimeout(resolve, 1_500)));
await Promise.race([all, ended]);
const wall = performance.now() - begin;
const { user, system } = process.cpuUsage(cpu);
client.end(true);
console.log(
  JSON.stringify({
    seen,
    perSecond: Math.round(seen / (wall / 1_000)),
    cpuPercent: Math.round(((user + system) / 1_000 / wall) * 100),
    microsPerMessage: Number(((user + system) / seen).toFixed(1)),
    rssMB: Math.round(process.memoryUsage.rss() / 1e6),
  }),
);
