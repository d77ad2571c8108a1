// Adds 20 ms to every sync: messages a second, whether acknowledgements are in order, and whether the connection stays
// open.
// A proxy between mosquitto and the source observes them.
// Run: node test/bench/mqtt/slow-sync.bench.ts [minutes, 10] [messages/s, 20000] [ms a sync takes longer, 20]
import { spawn } from "node:child_process";
import { loadavg } from "node:os";
import { createInterface } from "node:readline";
import { openMosquitto } from "../../support/mosquitto.ts";
import { openMqttTap } from "../../support/mqtt-tap.ts";
import type { Load } from "./load.ts";

const [minutes = "10", rate = "20000", syncMs = "20"] = process.argv.slice(2);
const script = (name: string) => new URL(name, import.meta.url).pathname;
await using broker = await openMosquitto({ config: ["max_inflight_messages 0", "set_tcp_nodelay true"] });
await using tap = await openMqttTap(broker.port);
const { username, password } = broker;
const load: Load = {
  host: "127.0.0.1",
  port: tap.port,
  username,
  password,
  qos: 1,
  rate: Number(rate),
  topics: 1_000,
  total: Number(rate) * 60 * Number(minutes),
  syncMs: Number(syncMs),
};
const flags = ["--max-semi-space-size=4", "--heap-growing-percent=40"];
const client = spawn(process.execPath, [...flags, script("source-client.ts"), JSON.stringify(load), "durable"], {
  stdio: ["ignore", "pipe", "inherit"],
});
const lines = createInterface(client.stdout)[Symbol.asyncIterator]();
await lines.next();
console.log(
  `${minutes} min at ${rate} messages/s, QoS 1, each sync ${syncMs} ms longer; load ${loadavg()[0]?.toFixed(1)}`,
);
const toBroker = JSON.stringify({ ...load, port: broker.port });
spawn(process.execPath, [script("publisher.ts"), toBroker], { stdio: "inherit" });
const begin = performance.now();
const minute = setInterval(() => {
  const seconds = (performance.now() - begin) / 1_000;
  const { acknowledged, outOfOrder, connections } = tap;
  const perSecond = Math.round(acknowledged / seconds);
  console.log(
    `${Math.round(seconds)} s: ${perSecond}/s acknowledged, ${outOfOrder} out of order, ${connections} connections`,
  );
}, 60_000);
const { value } = await lines.next();
clearInterval(minute);
console.log(value);
console.log(
  `${tap.acknowledged} acknowledged, ${tap.outOfOrder} out of order, ${tap.connections} connections; load ${loadavg()[0]?.toFixed(1)}`,
);
