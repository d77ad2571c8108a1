// The cost of the whole agent with one OPC UA source: `node test/bench/opcua/agent.bench.ts [--items 2000] [--seconds
// 20]
// [--rounds 3] [--idle] PROGRAM...`. The programs (`dist/main.js` by default) take turns; server and service run in
// their own processes. With `--idle` the variables do not change, and one line shows processor time and memory at rest.
import { spawn } from "node:child_process";
import { loadavg } from "node:os";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { nodeFlags } from "../../../src/cli/shared/node-flags.ts";
import { startAgent } from "../../support/agent-process.ts";
import { eventually } from "../../support/eventually.ts";
import { integration, password } from "../../support/service.ts";
import { serviceProcess } from "../../support/service-process.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";
import { cpuSeconds, median, memory } from "../agent/process-usage.ts";

const { values, positionals } = parseArgs({
  options: {
    items: { type: "string", default: "2000" },
    seconds: { type: "string", default: "20" },
    warmUp: { type: "string", default: "10" },
    rounds: { type: "string", default: "3" },
    idle: { type: "boolean", default: false },
    node: { type: "string", multiple: true, default: [] },
  },
  allowPositionals: true,
});
const [items, seconds, warmUp, rounds] = [values.items, values.seconds, values.warmUp, values.rounds].map(Number) as [
  number,
  number,
  number,
  number,
];
const programs = positionals.length > 0 ? positionals : [resolve(import.meta.dirname, "../../../dist/main.js")];
// The same as in the systemd unit.
const env = { MALLOC_ARENA_MAX: "1", MALLOC_MMAP_THRESHOLD_: "1048576", MALLOC_TRIM_THRESHOLD_: "1048576" };

using folder = temporaryFolder();
const everyMs = values.idle ? "86400000" : "1000";
const server = spawn(
  process.execPath,
  [join(import.meta.dirname, "server.ts"), folder.file("server"), String(items), everyMs],
  { stdio: ["pipe", "pipe", "inherit"] },
);
const ready = await new Promise<string>((done) => createInterface(server.stdout).once("line", done));
const { port } = JSON.parse(ready) as { port: number }; // printed by server.ts

const results = new Map(programs.map((program) => [program, [] as Result[]]));
interface Result {
  readonly microseconds: number;
  readonly core: number;
  readonly rss: number;
}
for (let round = 0; round < rounds; round++)
  for (const program of programs) results.get(program)?.push(await run(program));
server.stdin.end();
for (const [program, all] of results) {
  const of = (what: keyof Result) => all.map((each) => each[what]);
  console.log(
    `${program}: ${median(of("microseconds")).toFixed(1)} µs a point, ${median(of("core")).toFixed(2)} % of a core (${of(
      "core",
    )
      .map((each) => each.toFixed(2))
      .join(", ")}), ${median(of("rss")).toFixed(0)} MB; load ${loadavg()[0]?.toFixed(1)}`,
  );
}

async function run(program: string): Promise<Result> {
  using own = temporaryFolder();
  await using service = await serviceProcess(own.file("service"));
  await using agent = await startAgent({
    folder: own.path,
    entry: program,
    env,
    nodeOptions: [...nodeFlags, ...values.node],
    configuration: `version: 1
agent: { name: bench, dataDir: ${JSON.stringify(own.file("data"))} }
service: { url: "${service.url}", integration: ${integration}, auth: { basic: { password: "${password}" } } }
http: { listen: "127.0.0.1:0" }
sources:
  line:
    type: opcua
    url: opc.tcp://127.0.0.1:${port}
    security: { mode: none }
    tags: [{ input: "line.{name}", browse: /Bench/*, limit: ${items}, every: 1s }]
`,
  });
  await eventually(async () => (await agent.status()).buffer.appendedPoints >= items);
  await sleep(warmUp * 1_000);
  const before = {
    cpu: cpuSeconds(agent.pid),
    points: (await agent.status()).buffer.appendedPoints,
    at: performance.now(),
  };
  const resident: number[] = [];
  for (let second = 0; second < seconds; second++) {
    await sleep(1_000);
    resident.push(memory(agent.pid).rss);
  }
  const cpu = cpuSeconds(agent.pid) - before.cpu;
  const elapsed = (performance.now() - before.at) / 1_000;
  const points = (await agent.status()).buffer.appendedPoints - before.points;
  await agent.stop();
  const result = { microseconds: (cpu * 1e6) / points, core: (100 * cpu) / elapsed, rss: median(resident) };
  console.log({ program, points, ...result, peak: Math.max(...resident) });
  return result;
}
