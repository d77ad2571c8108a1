// The MQTT source as a client. `alone`: decodes, and acknowledges after `syncMs`. `durable`: also maps and appends to
// the disk buffer, and acknowledges after its sync. Arguments: a `Load` as JSON, and one of these two names.
import { mkdtempSync, rmSync } from "node:fs";
import { openDiskBuffer } from "../../../src/buffer/disk/disk-buffer.ts";
import { bufferOptions } from "../../../src/buffer/disk/options.ts";
import type { Delivery } from "../../../src/core/source.ts";
import { tagOptions } from "../../../src/mapping/options.ts";
import { openMapping } from "../../../src/mapping/source-mapping.ts";
import { openMqttSource } from "../../support/mqtt-source.ts";
import { testRuntime } from "../../support/runtime.ts";
import { type Load, Meter } from "./load.ts";

const { host, port, username, password, qos, total, syncMs }: Load = JSON.parse(process.argv[2] ?? "");
const durable = process.argv[3] === "durable";
const { signal } = new AbortController();
const runtime = testRuntime();
const folder = mkdtempSync("/var/tmp/mqtt-bench-");
process.once("exit", () => rmSync(folder, { recursive: true, force: true }));
const config = bufferOptions.parse({ reserveFreeDisk: "0" });
const place = { directory: `${folder}/buffer`, integration: "bench", config };
await using buffer = durable ? await openDiskBuffer(place, runtime, signal) : undefined;
const rules = [tagOptions.parse({ input: "{line}.{machine}.temp", maxInputs: 200_000 })];
using mapping = openMapping({ source: "hall", rules, catalog: { describe: () => {} } }, runtime);
const url = `mqtt://${host}:${port}`;
const options = { url, username, password, qos, session: { persistent: qos > 0 } };
const tags = [{ topic: "plant/{line}/{machine}/temp", value: "$.v", time: { at: "$.ts", format: "unixMs" } }];
await using source = await openMqttSource({ options, tags }, runtime, signal);
const meter = new Meter(total);
console.log("ready");

async function store(delivery: Delivery): Promise<void> {
  if (buffer) await buffer.append(mapping.map(delivery), { awaited: delivery.awaited }, signal);
  if (syncMs > 0) await new Promise((resolve) => setTimeout(resolve, syncMs));
}

for await (const delivery of source.deliveries(signal)) {
  const last = meter.count(delivery.readings.length);
  await store(delivery);
  delivery.ack();
  // The oldest message of a delivery waited longest.
  const [oldest] = delivery.readings;
  if (oldest) meter.acknowledged(Date.now() - oldest.time / 1_000);
  if (last) break;
}
console.log(JSON.stringify(meter.usage()));
