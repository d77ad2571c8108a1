// The bytes of heap that each part of the agent takes for an input over MQTT, without a broker and without a disk.
// Configuration, mapping and source get one message of each input. Exact to a few bytes, and the same on any machine.
// `captured`: one tag whose topic captures every name; `configured`: a tag for each input.
// `node --expose-gc test/bench/agent/input-parts.bench.ts [inputs] [captured|configured] [file for a heap snapshot]`

import { writeFileSync } from "node:fs";
import { writeHeapSnapshot } from "node:v8";
import { processEnvironment } from "../../../src/config/files/environment.ts";
import { loadConfig } from "../../../src/config/load.ts";
import { InputOwners } from "../../../src/mapping/input-owners.ts";
import { openMapping } from "../../../src/mapping/source-mapping.ts";
import type { MqttTag } from "../../../src/source/mqtt/config/tag.ts";
import { openMessageReceiver } from "../../../src/source/mqtt/receiver/message-receiver.ts";
import { testRuntime } from "../../support/runtime.ts";
import { integration } from "../../support/service.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";

const [inputsText = "100000", mode = "configured", snapshot] = process.argv.slice(2);
const inputs = Number(inputsText);
const nameOf = (i: number) => `line${String(i % 10).padStart(2, "0")}/tag${String(i).padStart(6, "0")}`;
const value = "value: $.v, time: { at: $.ts, format: unixMs }";

const before = heap();
let last = before;
function heap(): number {
  for (let i = 0; i < 4; i++) globalThis.gc?.();
  const { heapUsed, arrayBuffers } = process.memoryUsage();
  return heapUsed + arrayBuffers;
}
function report(part: string): void {
  const now = heap();
  console.log(`${part.padEnd(40)} ${((now - last) / inputs).toFixed(0).padStart(6)} bytes`);
  last = now;
}

using folder = temporaryFolder();
const tags =
  mode === "captured"
    ? [`      - { input: "{line}.{tag}", topic: "plant/{line}/{tag}", ${value}, maxInputs: 200000 }`]
    : Array.from({ length: inputs }, (_, i) => {
        const name = nameOf(i);
        return `      - { input: "${name.replace("/", ".")}", topic: "plant/${name}", ${value} }`;
      });
writeFileSync(
  folder.file("tagferry.yaml"),
  `version: 1
agent: { name: bench, dataDir: /tmp/none }
service: { url: "http://127.0.0.1:1/v1", integration: ${integration}, auth: { basic: { password: "x" } } }
http: { listen: "127.0.0.1:0" }
sources:
  plant:
    type: mqtt
    url: mqtt://127.0.0.1:1
    tags:
${tags.join("\n")}
`,
);
tags.length = 0;
last = heap();
const config = await loadConfig(folder.file("tagferry.yaml"), processEnvironment());
report("configuration");
const source = config.sources[0];
if (!source) throw new Error("no source");
const runtime = testRuntime();
const mapping = openMapping(
  { source: "plant", rules: source.rules, catalog: { describe() {} }, owners: new InputOwners() },
  runtime,
);
report("mapping, nothing read");
const link = { acknowledge() {}, publish() {}, resume() {} };
const receiver = openMessageReceiver(
  { source: "plant", tags: source.tags as unknown as readonly MqttTag[], maxPayload: 1_000, requestRebirth: false },
  runtime,
  link,
);
report("MQTT, nothing read");
const deliveries = receiver.deliveries(new AbortController().signal);
async function round(n: number, stored: boolean): Promise<void> {
  let waiting = 0;
  for (let i = 0; i < inputs; i++) {
    const payload = Buffer.from(`{"ts":${Date.now()},"v":${(i * 7 + n) / 1_000},"unit":"degC","seq":${i}}`);
    // A socket yields a new string for each topic.
    const topic = Buffer.from(`plant/${nameOf(i)}`).toString();
    const goesOn = receiver.receive({ topic, payload, retained: false, held: undefined });
    if (++waiting < 5_000 && goesOn && i < inputs - 1) continue;
    waiting = 0;
    const { value: delivery } = await deliveries.next();
    if (!delivery) throw new Error("no delivery");
    if (stored) mapping.map(delivery);
    delivery.ack();
  }
}
await round(1, false);
report("MQTT, a message of each");
await round(2, true);
report("mapping, a value of each");
await round(3, true);
report("a second value of each");
console.log(`in all ${((last - before) / inputs).toFixed(0)} bytes`);
if (snapshot !== undefined) writeHeapSnapshot(snapshot);
// Keeps all of it reachable until here.
void [config, mapping, receiver];
