// What the records of the members cost three real servers on this machine: processor time of each, and how many members
// the one sees that sees fewest. All members are in this process, each with a connection of its own, and do nothing else.
// Run: node test/bench/cluster/members.bench.ts [seconds] [members …]

import { NatsLink, natsHeartbeats } from "../../../src/cluster/connection/nats-connection.ts";
import { natsBucket } from "../../../src/cluster/connection/nats-jetstream.ts";
import { clusterOptions } from "../../../src/cluster/connection/options.ts";
import { Membership } from "../../../src/cluster/members/membership.ts";
import { openNatsServers } from "../../support/nats-servers.ts";
import { testRuntime } from "../../support/runtime.ts";
import { cpuSeconds, median } from "../agent/process-usage.ts";

const [seconds = 30, ...sizes] = process.argv.slice(2).map(Number);

for (const size of sizes.length > 0 ? sizes : [10, 30, 100, 200]) {
  await using servers = await openNatsServers();
  await using closing = new AsyncDisposableStack();
  const ended = new AbortController();
  const options = clusterOptions.parse({ servers: servers.urls });
  const members: Membership[] = [];
  const runs: Promise<void>[] = [];
  for (let i = 0; i < size; i++) {
    const runtime = testRuntime({ seed: i });
    const link = closing.use(new NatsLink(options, `gw${i}`, runtime));
    await link.connected(AbortSignal.timeout(30_000));
    const state = natsBucket(link, { name: "state", replicas: 3 });
    const heartbeats = natsHeartbeats(link, "plant", runtime.clock);
    const report = () => ({ version: "1", offers: [], prefers: [], reads: [] });
    const member = new Membership({ state, heartbeats, node: `gw${i}`, report }, runtime);
    members.push(member);
    runs.push(member.run(ended.signal));
  }
  const seen = () =>
    members
      .map((member) => member.members.filter(({ aliveMs }) => aliveMs !== undefined).length)
      .toSorted((a, b) => a - b);
  const began = performance.now();
  const elapsed = () => (performance.now() - began) / 1_000;
  while (seen()[0] !== size && elapsed() < 60) await new Promise((resolve) => setTimeout(resolve, 50));
  const complete = elapsed();
  const servings = servers.servers.map(({ pid }) => cpuSeconds(pid));
  const own = process.cpuUsage();
  const start = elapsed();
  const least: number[] = [];
  while (elapsed() - start < seconds) {
    await new Promise((resolve) => setTimeout(resolve, 500));
    least.push(seen()[0] ?? 0);
  }
  const lasted = elapsed() - start;
  const { user, system } = process.cpuUsage(own);
  const shares = servers.servers.map(({ pid }, i) => (100 * (cpuSeconds(pid) - servings[i]!)) / lasted);
  console.log(
    `${size} members: all see all after ${complete.toFixed(1)} s; then the one that sees fewest sees ${median(least)} (median), ${Math.min(...least)} (least); servers ${shares.map((share) => share.toFixed(1)).join(", ")} % of a core, this process ${((user + system) / 1e4 / lasted).toFixed(0)} %`,
  );
  ended.abort();
  await Promise.all(runs);
}
