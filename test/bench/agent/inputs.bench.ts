// The memory cost of an input: the whole agent before and after it has read this many inputs over MQTT. mosquitto is
// the broker, and the local service runs in its own process. `captured`: one tag whose topic captures every name;
// `configured`: a tag for each input.
// `node test/bench/agent/inputs.bench.ts [inputs] [captured|configured] [snapshot|gc|report]`
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, readdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { z } from "zod";
import { nodeFlags } from "../../../src/cli/shared/node-flags.ts";
import { startAgent } from "../../support/agent-process.ts";
import { eventually } from "../../support/eventually.ts";
import { openMosquitto } from "../../support/mosquitto.ts";
import { integration, password } from "../../support/service.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";
import { memory } from "./process-usage.ts";

const heapOfThread = z.object({
  totalCommittedMemory: z.number(),
  usedMemory: z.number(),
  externalMemory: z.number(),
});
const nodeReport = z.object({
  javascriptHeap: heapOfThread,
  workers: z.array(z.object({ javascriptHeap: heapOfThread })),
});

const root = resolve(import.meta.dirname, "../../..");
const [inputsText = "100000", mode = "captured", snapshot] = process.argv.slice(2);
const inputs = Number(inputsText);
const perSecond = 10_000;

using folder = temporaryFolder();
await using broker = await openMosquitto();
const service = await startService();

const nameOf = (i: number) => `line${String(i % 10).padStart(2, "0")}/tag${String(i).padStart(6, "0")}`;
const value = "value: $.v, time: { at: $.ts, format: unixMs }";
const tags =
  mode === "captured"
    ? [`      - { input: "{line}.{tag}", topic: "plant/{line}/{tag}", ${value}, maxInputs: 200000 }`]
    : Array.from({ length: inputs }, (_, i) => {
        const name = nameOf(i);
        return `      - { input: "${name.replace("/", ".")}", topic: "plant/${name}", ${value} }`;
      });
const configuration = `version: 1
agent: { name: bench, dataDir: ${JSON.stringify(folder.file("data"))} }
service: { url: "${service.url}", integration: ${integration}, auth: { basic: { password: "${password}" } } }
http: { listen: "127.0.0.1:0" }
sources:
  plant:
    type: mqtt
    url: mqtt://127.0.0.1:${broker.port}
    username: ${broker.username}
    password: ${broker.password}
    tags:
${tags.join("\n")}
`;
const nodeOptions = [
  ...nodeFlags,
  ...(snapshot === "gc" ? ["--trace-gc"] : []),
  ...(snapshot === "snapshot" ? ["--heapsnapshot-signal=SIGUSR2"] : []),
  ...(snapshot === "report" ? ["--report-on-signal", `--report-directory=${folder.path}`] : []),
];
// The same as in the systemd unit.
const env = { MALLOC_ARENA_MAX: "1", MALLOC_MMAP_THRESHOLD_: "1048576", MALLOC_TRIM_THRESHOLD_: "1048576" };
await using agent = await startAgent({ folder: folder.path, configuration, nodeOptions, env, readyWithinMs: 400_000 });
// Waits until the broker has granted all subscriptions, because earlier messages reach no subscriber. It does not poll
// the status, which is 40 MB of JSON for 100,000 tags.
const subscriptions = mode === "captured" ? 1 : inputs;
const subscribed = new RegExp(`"subscriptions":${subscriptions}[,}]`);
await eventually(async () => subscribed.test(await (await fetch(new URL("/api/view", agent.page))).text()), 300_000);
const before = await settled();
report("connected, nothing read", before);

for (let round = 1; round <= 2; round++) {
  const load = spawn(
    process.execPath,
    [
      join(import.meta.dirname, "mqtt-load.ts"),
      String(broker.port),
      broker.username,
      broker.password,
      String(perSecond),
      String(inputs),
      String(inputs / perSecond),
    ],
    { stdio: ["ignore", "ignore", "inherit"] },
  );
  await once(load, "exit");
  await eventually(async () => {
    const metrics = await metricsText();
    const appended = Number(/^tagferry_buffer_appended_points_total\S* (\d+)/m.exec(metrics)?.[1]);
    return appended >= inputs * round && /^tagferry_buffer_unsettled_points\S* 0$/m.test(metrics);
  }, 300_000);
  report(`round ${round} delivered`, await settled());
}
if (snapshot === "report" || snapshot === "snapshot") {
  process.kill(agent.pid, "SIGUSR2");
  await new Promise((done) => setTimeout(done, snapshot === "report" ? 5_000 : 25_000));
}
if (snapshot === "report") reportThreads();
await agent.stop();
service.process.kill("SIGTERM");

/** Measured 10 s later, so that the agent has had time to release memory. */
async function settled(): Promise<{ rss: number; heap: number }> {
  await new Promise((done) => setTimeout(done, 10_000));
  return { rss: memory(agent.pid).rss, heap: await heapUsed() };
}

async function metricsText(): Promise<string> {
  return await (await fetch(new URL("/metrics", agent.page))).text();
}

async function heapUsed(): Promise<number> {
  const metrics = await metricsText();
  return Number(/^tagferry_process_heap_used_bytes (\S+)/m.exec(metrics)?.[1]) / 1e6;
}

function report(stage: string, { rss, heap }: { rss: number; heap: number }): void {
  const { peak } = memory(agent.pid);
  const each = stage.startsWith("round") ? `, ${(((rss - before.rss) * 1e6) / inputs).toFixed(0)} bytes an input` : "";
  console.log(
    `${mode}, ${inputs} inputs, ${stage}: ${rss.toFixed(0)} MB resident (most ${peak.toFixed(0)}), heap of the main thread ${heap.toFixed(0)} MB${each}`,
  );
}

/** Prints the heaps of the threads, and the memory that the C library has obtained from the system. */
function reportThreads(): void {
  const file = readdirSync(folder.path).find((name) => name.startsWith("report."));
  if (file === undefined) throw new Error("the agent has written no report");
  const { javascriptHeap, workers } = nodeReport.parse(JSON.parse(readFileSync(folder.file(file), "utf8")));
  for (const [i, heap] of [javascriptHeap, ...workers.map((worker) => worker.javascriptHeap)].entries()) {
    const { totalCommittedMemory, usedMemory, externalMemory } = heap;
    const [committed, used, external] = [totalCommittedMemory, usedMemory, externalMemory].map((n) =>
      Math.round(n / 1e6),
    );
    console.log(`thread ${i}: heap ${committed} MB, of which ${used} MB used; ${external} MB of buffers`);
  }
  const smaps = readFileSync(`/proc/${agent.pid}/smaps`, "utf8");
  const allocated = /\[heap\]\n(?:.*\n)*?Rss: +(\d+) kB/.exec(smaps)?.[1];
  console.log(`allocated by the C library: ${Math.round(Number(allocated) / 1_000)} MB resident`);
}

async function startService(): Promise<{ readonly url: string; readonly process: ReturnType<typeof spawn> }> {
  const data = folder.file("service");
  mkdirSync(data);
  const child = spawn(
    process.execPath,
    [
      join(root, "src/cli/main.ts"),
      "service",
      "--listen=127.0.0.1:0",
      `--data=${data}`,
      `--integration=${integration}`,
      `--password=${password}`,
      "--grant=admin,platform",
    ],
    { stdio: ["ignore", "pipe", "inherit"] },
  );
  const lines = createInterface({ input: child.stdout });
  for await (const line of lines) {
    const url = /http:\/\/\S+/.exec(line)?.[0];
    if (url !== undefined) {
      child.stdout.resume();
      return { url, process: child };
    }
  }
  throw new Error("the service did not start");
}
