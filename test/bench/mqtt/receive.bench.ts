// The cost of receiving: `mosquitto_sub` as the lower bound, the bare library, the source alone, and the source with
// mapping and disk buffer. They run in turn in each round, with mosquitto and the same load. Medians of the rounds.
// Run: node test/bench/mqtt/receive.bench.ts [seconds each] [rounds] [scenario, ...]
// Memory over many messages: node test/bench/mqtt/receive.bench.ts memory [millions]
import { spawn } from "node:child_process";
import { writeFileSync } from "node:fs";
import { cpus, loadavg } from "node:os";
import { createInterface } from "node:readline";
import { build } from "esbuild";
import { openMosquitto } from "../../support/mosquitto.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";
import type { Load, Usage } from "./load.ts";

type Scenario = Pick<Load, "qos" | "rate" | "topics" | "syncMs">;
const scenarios: Readonly<Record<string, Scenario>> = {
  "qos1-1000-topics": { qos: 1, rate: 20_000, topics: 1_000, syncMs: 0 },
  "qos1-10000-topics": { qos: 1, rate: 20_000, topics: 10_000, syncMs: 0 },
  "qos1-sync-20ms": { qos: 1, rate: 20_000, topics: 1_000, syncMs: 20 },
  "qos0-saturated": { qos: 0, rate: 0, topics: 1_000, syncMs: 0 },
};
type Client = (load: Load) => readonly [string, ...string[]];
const script = (name: string) => new URL(name, import.meta.url).pathname;

// Bundled like the released agent, because running TypeScript would add to the client's memory.
using bundles = temporaryFolder();
writeFileSync(bundles.file("package.json"), '{ "type": "module" }');
await build({
  entryPoints: ["bare-client.ts", "source-client.js", "../../../src/buffer/disk/worker/disk-worker.ts"].map(script),
  outdir: bundles.path,
  entryNames: "[name]",
  bundle: true,
  splitting: true,
  minify: true,
  platform: "node",
  format: "esm",
  target: "node24",
  external: ["proper-lockfile", "serialport"],
  banner: { js: 'import{createRequire as requireFrom}from"node:module";const require=requireFrom(import.meta.url);' },
});
const node = (name: string, ...more: string[]): Client => {
  // The agent's own flags; it sets the second one itself (`boundGarbage`).
  const flags = ["--max-semi-space-size=4", "--heap-growing-percent=40"];
  return (load) => [process.execPath, ...flags, bundles.file(name), JSON.stringify(load), ...more];
};
const clients: Readonly<Record<string, Client>> = {
  mosquitto_sub: ({ host, port, username, password, qos, total }) => {
    const login = `-h ${host} -p ${port} -u ${username} -P ${password}`;
    const receive = `mosquitto_sub ${login} -V 5 -D connect receive-maximum 2000 -q ${qos} -t plant/# -C ${total}`;
    return ["bash", "-c", `sleep 0.5 && echo ready & ${receive} >/dev/null; times`];
  },
  bare: node("bare-client.js"),
  alone: node("source-client.js", "alone"),
  durable: node("source-client.js", "durable"),
};

async function measure(client: Client, scenario: Scenario, total: number): Promise<Usage> {
  await using broker = await openMosquitto({ config: ["max_inflight_messages 0", "set_tcp_nodelay true"] });
  const { port, username, password } = broker;
  const load: Load = { ...scenario, total, host: "127.0.0.1", port, username, password };
  const [command, ...args] = client(load);
  const child = spawn(command, args, { stdio: ["ignore", "pipe", "inherit"] });
  const lines = createInterface(child.stdout)[Symbol.asyncIterator]();
  await lines.next();
  const begin = performance.now();
  const publisher = spawn(process.execPath, [script("publisher.ts"), JSON.stringify(load)], { stdio: "inherit" });
  const ended = new Promise((resolve) => publisher.once("exit", resolve));
  // QoS 0 messages may be lost. Those that are missing long after the last one was published will not arrive.
  const overdue = ended.then(() => setTimeout(() => child.kill(), 60_000));
  const said: string[] = [];
  for (let line = await lines.next(); !line.done; line = await lines.next()) said.push(line.value);
  clearTimeout(await overdue);
  const seconds = (performance.now() - begin) / 1_000;
  const text = said.at(-1);
  if (text === undefined) throw new Error("a client ended without a word");
  if (text.startsWith("{")) return JSON.parse(text) as Usage; // printed by load.ts
  const [user = 0, system = 0] = text.split(" ").map((part) => Number(/m([\d.]+)s/.exec(part)?.[1] ?? 0));
  return { seen: total, seconds, cpuSeconds: user + system, rssMB: 0 };
}

function median(numbers: readonly number[]): number {
  return numbers.toSorted((a, b) => a - b)[Math.floor(numbers.length / 2)] ?? Number.NaN;
}

function line(name: string, usages: readonly Usage[]): string {
  const of = (pick: (usage: Usage) => number | undefined, digits = 0) => {
    const found = usages.map(pick).filter((value) => value !== undefined);
    return (found.length > 0 ? median(found).toFixed(digits) : "-").padStart(9);
  };
  return [
    name.padEnd(14),
    of(({ seen, seconds }) => seen / seconds),
    of(({ cpuSeconds, seconds }) => (cpuSeconds / seconds) * 100),
    of(({ cpuSeconds, seen }) => (cpuSeconds / seen) * 1e6, 1),
    of(({ rssMB }) => rssMB || undefined),
    of(({ ackP50 }) => ackP50),
    of(({ ackP99 }) => ackP99),
  ].join(" ");
}

const heading = "client          msg/s   % of a core  µs/msg  RSS MB  ack p50 ms  ack p99 ms";
const load = () =>
  `load ${loadavg()
    .map((n) => n.toFixed(1))
    .join(" ")} on ${cpus().length} cores`;

async function compare(seconds: number, rounds: number, names: readonly string[]): Promise<void> {
  for (const name of names) {
    const scenario = scenarios[name];
    if (!scenario) throw new Error(`no scenario ${name}; there are ${Object.keys(scenarios).join(", ")}`);
    console.log(`\n${name}, ${rounds} rounds of ${seconds} s, ${load()}\n${heading}`);
    const usages = new Map(Object.keys(clients).map((client) => [client, [] as Usage[]]));
    const total = (scenario.rate || 50_000) * seconds;
    for (let round = 0; round < rounds; round++)
      for (const [client, run] of Object.entries(clients))
        usages.get(client)?.push(await measure(run, scenario, total));
    for (const [client, measured] of usages) console.log(line(client, measured));
    console.log(load());
  }
}

async function memory(millions: number): Promise<void> {
  const scenario: Scenario = { qos: 1, rate: 0, topics: 1_000, syncMs: 5 };
  console.log(`memory, ${millions} million messages, QoS 1, ${load()}`);
  console.log(JSON.stringify(await measure(node("source-client.js", "alone"), scenario, millions * 1e6)));
  console.log(load());
}

const [first = "10", second = "3", ...chosen] = process.argv.slice(2);
if (first === "memory") await memory(Number(process.argv[3] ?? 10));
else await compare(Number(first), Number(second), chosen.length > 0 ? chosen : Object.keys(scenarios));
