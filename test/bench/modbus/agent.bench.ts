// The cost of the whole agent with Modbus TCP: 20 devices of 500 registers, each register a tag, read every second and
// delivered to the local service. Devices and service run in their own processes. Several programs are measured in
// turn, with their medians. `npm run build && node test/bench/modbus/agent.bench.ts [seconds] [rounds] [program …]`
import { fork, spawn } from "node:child_process";
import { once } from "node:events";
import { readdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { startAgent } from "../../support/agent-process.ts";
import { eventually } from "../../support/eventually.ts";
import { integration, password } from "../../support/service.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";
import { cpuSeconds, median, memory } from "../agent/process-usage.ts";

const root = resolve(import.meta.dirname, "../../..");
const [secondsText = "20", roundsText = "3", ...given] = process.argv.slice(2);
const seconds = Number(secondsText);
const programs = given.length > 0 ? given : [join(root, "dist/main.js")];
const devices = 20;
const registers = 500;
/** By then, connecting, saving and reading back the metadata, and compilation are done. */
const warmUpMs = 40_000;

interface Result {
  /** CPU milliseconds per 1,000 points. */
  readonly cost: number;
  readonly rss: number;
}

const child = fork(join(import.meta.dirname, "devices.ts"), [String(devices), "moving"]);
const [urls] = (await once(child, "message")) as [readonly string[]]; // sent by devices.ts
const results = new Map<string, Result[]>(programs.map((program) => [program, []]));
for (let round = 0; round < Number(roundsText); round++)
  for (const program of programs) results.get(program)?.push(await measure(program));
for (const [program, all] of results)
  console.log(
    `${program}: median ${median(all.map(({ cost }) => cost)).toFixed(1)} ms of CPU for 1,000 points, ${median(all.map(({ rss }) => rss)).toFixed(0)} MB`,
  );
child.disconnect();

async function measure(entry: string): Promise<Result> {
  using folder = temporaryFolder();
  await using service = await startService(folder.file("service"));
  const sources = urls.map(
    (url, i) =>
      `  d${i}: { type: modbus, url: "${url.replace("tcp:", "modbus:")}", tags: [${Array.from({ length: registers }, (_, r) => `{ input: d${i}.r${r}, at: "hr:${r}" }`).join(", ")}] }`,
  );
  await using agent = await startAgent({
    folder: folder.path,
    entry,
    configuration: `version: 1
agent: { name: bench, dataDir: ${JSON.stringify(folder.file("data"))} }
service: { url: "${service.url}", integration: ${integration}, auth: { basic: { password: "${password}" } } }
http: { listen: "127.0.0.1:0" }
sources:
${sources.join("\n")}
`,
  });
  await eventually(async () => (await agent.status()).sources.every(({ state }) => state === "online"));
  await pause(warmUpMs);
  const before = (await agent.status()).buffer;
  const counted = performance.now();
  // Polls rarely: the status of 10,000 tags costs as much as a second of work.
  await pause(2_000);
  const threads = threadSeconds(agent.pid);
  const cpu = cpuSeconds(agent.pid);
  const began = performance.now();
  const rss: number[] = [];
  while (performance.now() - began < seconds * 1_000) {
    await pause(500);
    rss.push(memory(agent.pid).rss);
  }
  const elapsed = (performance.now() - began) / 1_000;
  const used = cpuSeconds(agent.pid) - cpu;
  const after = threadSeconds(agent.pid);
  const { buffer } = await agent.status();
  const perSecond = 1_000 / (performance.now() - counted);
  const stored = (buffer.appendedPoints - before.appendedPoints) * perSecond;
  const settled = (buffer.settledPoints - before.settledPoints) * perSecond;
  const result = { cost: (used * 1e6) / (stored * elapsed), rss: median(rss) };
  const busiest = [...after]
    .map(([name, ticks]) => [name, ticks - (threads.get(name) ?? 0)] as const)
    .filter(([, ticks]) => ticks > 0)
    .toSorted(([, a], [, b]) => b - a);
  console.log(
    `${entry}: ${stored.toFixed(0)} points/s stored, ${settled.toFixed(0)} delivered, ` +
      `${((100 * used) / elapsed).toFixed(1)} % of a core, ${result.cost.toFixed(1)} ms for 1,000 points, ` +
      `${result.rss.toFixed(0)} MB (most ${memory(agent.pid).peak.toFixed(0)}); ` +
      busiest.map(([name, of]) => `${name} ${((100 * of) / elapsed).toFixed(1)}`).join(", "),
  );
  await agent.stop();
  return result;
}

/** Seconds of CPU time by thread name. */
function threadSeconds(pid: number): Map<string, number> {
  const seconds = new Map<string, number>();
  for (const thread of readdirSync(`/proc/${pid}/task`)) {
    const [, name = "", rest = ""] =
      /^\d+ \((.*)\) (.*)/.exec(readFileSync(`/proc/${pid}/task/${thread}/stat`, "utf8")) ?? [];
    const fields = rest.split(" ");
    seconds.set(name, (seconds.get(name) ?? 0) + (Number(fields[11]) + Number(fields[12])) / 100);
  }
  return seconds;
}

async function startService(data: string): Promise<AsyncDisposable & { readonly url: string }> {
  const login = ["--integration", integration, "--password", password, "--grant", "admin,platform"];
  const service = spawn(
    process.execPath,
    [join(root, "src/cli/main.ts"), "service", "--listen", "127.0.0.1:0", "--data", data, ...login],
    { stdio: ["ignore", "pipe", "inherit"] },
  );
  const [line] = (await once(createInterface({ input: service.stdout }), "line")) as [string];
  return {
    url: line.replace(/^service\s+/, ""),
    async [Symbol.asyncDispose]() {
      service.kill("SIGKILL");
      await once(service, "exit");
    },
  };
}

function pause(ms: number): Promise<void> {
  return new Promise((done) => setTimeout(done, ms));
}
