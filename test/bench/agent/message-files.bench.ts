// The files of `src` that one MQTT message passes from the socket to the request, in an agent from the sources that has
// handled the same messages before. V8 counts the calls of each function. A file counts if the message led to a call
// that a time of the same length without a message did not.
// `node test/bench/agent/message-files.bench.ts`
import { readdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { nodeFlags } from "../../../src/cli/shared/node-flags.ts";
import { startAgent } from "../../support/agent-process.ts";
import { eventually } from "../../support/eventually.ts";
import { openMqttBroker } from "../../support/mqtt-broker.ts";
import { ScriptedService } from "../../support/scripted-service.ts";
import { integration, password } from "../../support/service.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";

const windowMs = 4_000;
const quietWindows = 5;
const threads = 2;

using folder = temporaryFolder();
await using broker = await openMqttBroker();
await using service = await ScriptedService.open();
await using agent = await startAgent({
  folder: folder.path,
  entry: resolve(import.meta.dirname, "../../../src/cli/main.ts"),
  nodeOptions: [...nodeFlags, "--import", join(import.meta.dirname, "called-functions.ts")],
  env: { CALLS: folder.path },
  configuration: `version: 1
agent: { name: bench, dataDir: ${JSON.stringify(folder.file("data"))}, ownSignals: off }
service: { url: "${service.url}", integration: ${integration}, auth: { basic: { password: "${password}" } } }
http: { listen: "127.0.0.1:0" }
sources:
  plant:
    type: mqtt
    url: ${broker.url}
    tags:
      - { input: "{line}.{tag}", topic: "plant/{line}/{tag}", value: $.v, time: { at: $.ts, format: unixMs } }
`,
});
await eventually(async () => (await agent.status()).sources[0]?.state === "online");

let round = 0;
async function callsOf(work: () => Promise<void>): Promise<ReadonlyMap<string, number>> {
  await work();
  await new Promise((done) => setTimeout(done, windowMs));
  process.kill(agent.pid, "SIGUSR2");
  const written = () => readdirSync(folder.path).filter((name) => name.startsWith(`${round}-`));
  await eventually(() => written().length >= threads);
  await new Promise((done) => setTimeout(done, 500));
  const calls = written().flatMap(
    (name) => JSON.parse(readFileSync(folder.file(name), "utf8")) as readonly (readonly [string, number])[],
  );
  round++;
  return new Map(calls);
}

let sent = 0;
async function publish(): Promise<void> {
  sent++;
  await broker.publish("plant/line1/temperature", JSON.stringify({ ts: Date.now(), v: sent / 10 }), { qos: 1 });
  await eventually(async () => broker.acknowledged.length >= sent);
}

for (let i = 0; i < 5; i++) {
  await publish();
  await new Promise((done) => setTimeout(done, 1_500));
}
await callsOf(async () => {});
const quiet = new Map<string, number>();
for (let i = 0; i < quietWindows; i++)
  for (const [name, count] of await callsOf(async () => {})) quiet.set(name, Math.max(count, quiet.get(name) ?? 0));
const busy = await callsOf(publish);
const files = new Map<string, string[]>();
for (const [name, count] of busy) {
  if (count <= (quiet.get(name) ?? 0)) continue;
  const [file = "", called = ""] = name.split(" ");
  files.set(file, [...(files.get(file) ?? []), called]);
}
for (const file of [...files.keys()].sort((a, b) => (a < b ? -1 : 1)))
  console.log(`${file}: ${[...new Set(files.get(file))].join(", ")}`);
console.log(
  `${files.size} files, ${[...files].filter(([file]) => /^src\/(source|mapping|lib|core|wire)\//.test(file)).length} of them in source, mapping, lib, core and wire`,
);
