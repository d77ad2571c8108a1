// Drains a backlog from the stream of three real servers on this machine. First the reader alone, in points a second, with
// frames of one second of 1,000 tags, and with full frames as an agent publishes that catches up. Then the agent that
// delivers, to a service that counts, at one request a second.
// Run: node test/bench/cluster/drain.bench.ts [millions of points]

import { mkdirSync } from "node:fs";
import { startAgent } from "../../support/agent-process.ts";
import { eventually } from "../../support/eventually.ts";
import { type NatsWorld, natsWorld } from "../../support/nats-world.ts";
import { testRuntime } from "../../support/runtime.ts";
import { integration, password } from "../../support/service.ts";
import { openReader } from "../../support/stream-place.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";
import { cpuSeconds, memory } from "../agent/process-usage.ts";
import { countingSink } from "../peers/sink.ts";
import { publishBacklog } from "./backlog.ts";

const millions = Number(process.argv[2] ?? 10);
const never = new AbortController().signal;
const pointsPerRequest = 1_500_000;
const drainWithinMs = 3_600_000;

for (const seconds of [1, 60])
  for (const drain of [drainByReader, drainByAgent]) {
    await using world = await natsWorld({ maxSize: 4 * 2 ** 30, integration });
    const { frames, points, bytes } = await publishBacklog(world, millions * 1e6, seconds);
    console.log(`${frames} frames of ${seconds} s, ${points} points, ${(bytes / points).toFixed(2)} bytes a point`);
    await drain(world, points);
  }

async function drainByReader({ stream, state }: NatsWorld): Promise<void> {
  const reader = await openReader(stream, state, testRuntime());
  const cpu = process.cpuUsage();
  const began = performance.now();
  let points = 0;
  let requests = 0;
  for (;;) {
    const block = await reader.take("backlog", { wait: false, maxPoints: pointsPerRequest }, never);
    if (!block) break;
    points += block.points;
    requests++;
    await reader.settle([{ block: block.id, inputs: block.inputs }]);
  }
  const elapsed = (performance.now() - began) / 1_000;
  const { user, system } = process.cpuUsage(cpu);
  console.log(
    `reader: ${points} points in ${elapsed.toFixed(1)} s, ${Math.round(points / elapsed / 1_000)}k/s, ${requests} blocks, ${((user + system) / 1e6).toFixed(1)} s of processor time`,
  );
  await reader[Symbol.asyncDispose]();
}

/** From the first request to the last point, as the service counts them. */
async function drainByAgent({ cluster: { urls } }: NatsWorld, points: number): Promise<void> {
  using folder = temporaryFolder();
  await using sink = await countingSink();
  mkdirSync(folder.file("gw2"));
  const startedAt = performance.now();
  await using agent = await startAgent({
    folder: folder.file("gw2"),
    configuration: `version: 1
agent: { name: gw2, dataDir: ${JSON.stringify(folder.file("gw2/data"))}, ownSignals: off }
service: { url: "${sink.url}/v1", integration: ${integration}, auth: { basic: { password: "${password}" } } }
http: { listen: "127.0.0.1:0" }
cluster: { servers: ${JSON.stringify(urls)} }
sources: {}
`,
  });
  let first = 0;
  let mostMemory = 0;
  const counts = await eventually(async () => {
    const now = await sink.counts();
    if (first === 0 && now.points > 0) first = performance.now();
    mostMemory = Math.max(mostMemory, memory(agent.pid).rss);
    return now.points >= points && now;
  }, drainWithinMs);
  const elapsed = (performance.now() - first) / 1_000;
  console.log(
    `agent: ${counts.points} points in ${elapsed.toFixed(1)} s after the first request (${((first - startedAt) / 1_000).toFixed(1)} s after the start), ${counts.requests} requests, ${cpuSeconds(agent.pid).toFixed(1)} s of processor time, at most ${mostMemory.toFixed(0)} MB`,
  );
}
