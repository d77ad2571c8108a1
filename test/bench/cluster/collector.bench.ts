// What a cluster costs an agent: processor and memory of an agent by itself, and of an agent that collects the same load
// while another one delivers for it, in turn. Also the forward lag and the bytes of a point on the stream. mosquitto, three
// nats-servers, the local service and the load run on the same machine.
// Run: node test/bench/cluster/collector.bench.ts [seconds] [rounds] [points a second …]
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { type AgentProcess, startAgent } from "../../support/agent-process.ts";
import { eventually } from "../../support/eventually.ts";
import { openMosquitto } from "../../support/mosquitto.ts";
import { openNatsServers } from "../../support/nats-servers.ts";
import { integration, password, testService } from "../../support/service.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";
import { cpuSeconds, median, memory, quantile } from "../agent/process-usage.ts";

const [seconds = 30, rounds = 3, ...rates] = process.argv.slice(2).map(Number);
const topics = 1_000;
const patience = 120_000;
const warmUpMs = 5_000;

interface Usage {
  /** Percent of a core. */
  readonly cpu: number;
  /** Megabytes. */
  readonly rss: number;
}
interface Measured {
  readonly collector: Usage;
  readonly delivering?: Usage;
  readonly lags: readonly number[];
  readonly bytesPerPoint: number;
}

async function measure(rate: number, isClustered: boolean): Promise<Measured> {
  await using opened = new AsyncDisposableStack();
  const folder = opened.use(temporaryFolder());
  const broker = opened.use(await openMosquitto());
  const service = opened.use(await testService());
  const servers = isClustered ? opened.use(await openNatsServers()) : undefined;
  const start = async (name: string, topic: string) => {
    mkdirSync(folder.file(name));
    const configuration = `version: 1
agent: { name: ${name}, dataDir: ${JSON.stringify(folder.file(`${name}/data`))}, ownSignals: off }
service: { url: "${service.url}", integration: ${integration}, auth: { basic: { password: "${password}" } } }
http: { listen: "127.0.0.1:0" }
${servers ? `cluster: { servers: ${JSON.stringify(servers.urls)} }` : ""}
sources:
  plant:
    type: mqtt
    url: ${broker.url}
    username: ${broker.username}
    password: ${broker.password}
    tags:
      - { input: "{line}.{tag}", topic: "${topic}/{line}/{tag}", value: $.v, time: { at: $.ts, format: unixMs } }
`;
    const agent = opened.use(await startAgent({ folder: folder.file(name), configuration }));
    await eventually(async () => (await agent.status()).sources[0]?.state === "online", patience);
    return agent;
  };
  let delivering: AgentProcess | undefined;
  if (servers) {
    delivering = await start("gw2", "nothing");
    await eventually(async () => (await delivering?.status())?.cluster?.delivers === "gw2", patience);
  }
  const agent = await start("gw1", "plant");
  const duration = warmUpMs / 1_000 + seconds + 5;
  const load = spawn(
    process.execPath,
    [
      join(import.meta.dirname, "../agent/mqtt-load.ts"),
      ...[broker.port, broker.username, broker.password, rate, topics, duration].map(String),
    ],
    { stdio: ["ignore", "ignore", "inherit"] },
  );
  const loaded = once(load, "exit");
  await new Promise((done) => setTimeout(done, warmUpMs));

  const agents = [agent, ...(delivering ? [delivering] : [])];
  const kept = folder.file("gw1/data/forwarded");
  const before = agents.map(({ pid }) => cpuSeconds(pid));
  const points = (await agent.status()).buffer.appendedPoints;
  const bytes = sizeOf(kept);
  const began = performance.now();
  const rss: number[][] = agents.map(() => []);
  const lags: number[] = [];
  while (performance.now() - began < seconds * 1_000) {
    await new Promise((done) => setTimeout(done, 250));
    for (const [i, { pid }] of agents.entries()) rss[i]?.push(memory(pid).rss);
    lags.push((await agent.status()).cluster?.forwardLagMs ?? 0);
  }
  const elapsed = (performance.now() - began) / 1_000;
  const usage = agents.map(({ pid }, i) => ({
    cpu: (100 * (cpuSeconds(pid) - (before[i] ?? 0))) / elapsed,
    rss: median(rss[i] ?? []),
  }));
  const appended = (await agent.status()).buffer.appendedPoints - points;
  if (appended < 0.9 * rate * elapsed) console.log(`only ${Math.round(appended / elapsed)} points a second arrived`);
  const bytesPerPoint = (sizeOf(kept) - bytes) / appended;
  await loaded;
  const [collector = { cpu: Number.NaN, rss: Number.NaN }, other] = usage;
  return { collector, lags, bytesPerPoint, ...(other && { delivering: other }) };
}

/** Bytes of all files of a folder. */
function sizeOf(folder: string): number {
  // An agent by itself has none.
  if (!existsSync(folder)) return 0;
  const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  return files.reduce((sum, { parentPath, name }) => sum + statSync(join(parentPath, name)).size, 0);
}

for (const rate of rates.length > 0 ? rates : [1_000, 10_000]) {
  const single: Measured[] = [];
  const clustered: Measured[] = [];
  for (let round = 0; round < rounds; round++) {
    single.push(await measure(rate, false));
    clustered.push(await measure(rate, true));
  }
  const of = (all: readonly Measured[], what: (one: Measured) => number) => median(all.map(what));
  const line = (name: string, all: readonly Measured[], usage: (one: Measured) => Usage | undefined) =>
    `${name} ${of(all, (one) => usage(one)?.cpu ?? Number.NaN).toFixed(1)} % of a core, ${of(all, (one) => usage(one)?.rss ?? Number.NaN).toFixed(0)} MB`;
  const ratios = single.map(({ collector }, i) => (clustered[i]?.collector.cpu ?? Number.NaN) / collector.cpu);
  console.log(
    `${rate} points/s, medians of ${rounds}: ${line("single", single, (one) => one.collector)}; ${line("collector", clustered, (one) => one.collector)} (processor ${median(ratios).toFixed(2)} times); ${line("delivering agent", clustered, (one) => one.delivering)}; forward lag median ${of(clustered, ({ lags }) => median(lags)).toFixed(0)} ms, p99 ${of(clustered, ({ lags }) => quantile(lags, 0.99)).toFixed(0)} ms; ${of(clustered, (one) => one.bytesPerPoint).toFixed(2)} bytes a point on the stream; load ${readFileSync("/proc/loadavg", "utf8").split(" ")[0]}`,
  );
}
