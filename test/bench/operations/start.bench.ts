// The time of the bundled program from its start to ready and to the last connection, with and without its compile
// cache, the CPU time until then, and its resident memory half a minute later: MQTT alone, with OPC UA, all three
// protocols. For comparison, a Node process that does nothing.
// `npm run build && node test/bench/operations/start.bench.ts [rounds]`
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { cpus, loadavg } from "node:os";
import { resolve } from "node:path";
import { createInterface } from "node:readline";
import { nodeFlags } from "../../../src/cli/shared/node-flags.ts";
import { eventually } from "../../support/eventually.ts";
import { modbusDevice } from "../../support/modbus-device.ts";
import { openMqttBroker } from "../../support/mqtt-broker.ts";
import { opcuaServer } from "../../support/opcua-server.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";
import { cpuSeconds, median, memory } from "../agent/process-usage.ts";

const rounds = Number(process.argv[2] ?? "7");
const settleMs = 30_000;
const entry = resolve(import.meta.dirname, "../../../dist/main.js");
if (!existsSync(entry)) throw new Error("run `npm run build` first");

using home = temporaryFolder();
await using broker = await openMqttBroker();
await using device = await modbusDevice();
await using server = await opcuaServer({ folder: home.file("server") });
const sources = {
  mqtt: `{ type: mqtt, url: "${broker.url}", tags: [{ input: a, topic: a }] }`,
  opcua: `{ type: opcua, url: "${server.url}", security: { mode: none }, tags: [{ input: b, node: "i=2258" }] }`,
  modbus: `{ type: modbus, url: "${device.url}", devices: [{ unit: 1, tags: [{ input: c, at: "hr:0 u16" }] }] }`,
};
device.unit(1).set("hr", 0, [7]);
console.log(
  `${cpus()[0]?.model}, ${cpus().length} cores, Node ${process.version}, load ${loadavg()[0]?.toFixed(1)}, medians of ${rounds}`,
);
console.log(`Node that does nothing: ${(await bareNode()).toFixed(0)} MB`);
for (const names of [["mqtt"], ["mqtt", "opcua"], ["mqtt", "opcua", "modbus"]] as const) {
  const first: Started[] = [];
  const again: Started[] = [];
  for (let round = 0; round < rounds; round++) {
    const cache = home.file(`cache-${names.length}-${round}`);
    mkdirSync(cache);
    for (const times of [first, again]) {
      await using agent = await started(names, cache);
      times.push(agent);
      // The first start saves the compiled code a second after it is ready.
      await eventually(() =>
        readdirSync(cache, { recursive: true, encoding: "utf8" }).some((name) => name.endsWith(".code")),
      );
    }
  }
  await using agent = await started(names, home.file(`cache-${names.length}-0`));
  await new Promise((done) => setTimeout(done, settleMs));
  console.log(
    `${names.join(", ")}: ready after ${shown(again, "readyMs")} ms (${shown(first, "readyMs")} ms without the cache), ` +
      `connected after ${shown(again, "connectedMs")} ms, ${shown(again, "cpuMs")} ms of CPU until then, ` +
      `${memory(agent.pid).rss.toFixed(0)} MB resident`,
  );
}

interface Started {
  readonly readyMs: number;
  /** Until the last source is connected. */
  readonly connectedMs: number;
  /** CPU time of all threads until then, which load on the machine affects least. */
  readonly cpuMs: number;
}

function shown(starts: readonly Started[], figure: keyof Started): string {
  return median(starts.map((start) => start[figure])).toFixed(0);
}

async function started(names: readonly (keyof typeof sources)[], cache: string) {
  const folder = temporaryFolder();
  const file = folder.file("tagferry.yaml");
  writeFileSync(
    file,
    `version: 1
agent: { name: bench, dataDir: ${folder.file("data")} }
http: { listen: "127.0.0.1:0" }
service: { url: "http://127.0.0.1:1/v1", integration: c8ktonqsahsmemfs7lv0, auth: { basic: { password: x } } }
sources:
${names.map((name) => `  ${name}: ${sources[name]}`).join("\n")}
`,
  );
  const began = performance.now();
  // The flags of unit and image: any other one makes the program load all of its code, which takes 100 ms longer.
  const child = spawn(process.execPath, [...nodeFlags, entry, "run", "-c", file], {
    stdio: ["ignore", "ignore", "pipe"],
    // The environment of unit and image.
    env: { ...process.env, NODE_COMPILE_CACHE: cache, MALLOC_ARENA_MAX: "1" },
  });
  const lines = new Set<string>();
  let readyMs = Number.NaN;
  let connectedMs = Number.NaN;
  let cpuMs = Number.NaN;
  createInterface({ input: child.stderr }).on("line", (line) => {
    const { msg, source } = JSON.parse(line) as { readonly msg: string; readonly source?: string };
    if (msg === "ready") readyMs = performance.now() - began;
    if (msg === "connected" && source !== undefined) lines.add(source);
    if (Number.isNaN(cpuMs) && lines.size === names.length && !Number.isNaN(readyMs)) {
      connectedMs = performance.now() - began;
      cpuMs = cpuSeconds(child.pid ?? 0) * 1_000;
    }
  });
  await eventually(() => !Number.isNaN(cpuMs), 60_000);
  return {
    pid: child.pid ?? 0,
    readyMs,
    connectedMs,
    cpuMs,
    async [Symbol.asyncDispose]() {
      child.kill("SIGTERM");
      await once(child, "exit");
      // A stopped agent leaves its session for the next start, which here has another data directory.
      server.endSessions();
      folder[Symbol.dispose]();
    },
  };
}

async function bareNode(): Promise<number> {
  const child = spawn(process.execPath, [...nodeFlags, "-e", "setInterval(() => {}, 1000); console.log(1)"], {
    stdio: ["ignore", "pipe", "ignore"],
  });
  await once(child.stdout, "data");
  const { rss } = memory(child.pid ?? 0);
  child.kill("SIGTERM");
  await once(child, "exit");
  return rss;
}
