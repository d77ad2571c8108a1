// Agents of a cluster as real processes: one is killed, the other one delivers the points of both.
import { mkdirSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect, test } from "vitest";
import { nodeFlags } from "../../src/cli/shared/node-flags.ts";
import type { InputId } from "../../src/core/point.ts";
import { epochMicros } from "../../src/core/point.ts";
import { readBack } from "../../src/demo/read-back.ts";
import { type AgentProcess, startAgent } from "../support/agent-process.ts";
import { command } from "../support/command.ts";
import { eventually } from "../support/eventually.ts";
import { openMqttBroker } from "../support/mqtt-broker.ts";
import { hasDelivered, loadConfiguration, publishLoad } from "../support/mqtt-load.ts";
import { openNatsServers } from "../support/nats-servers.ts";
import { program } from "../support/program.ts";
import { testRuntime } from "../support/runtime.ts";
import { integration, password, testService } from "../support/service.ts";
import { type TcpProxy, tcpProxy } from "../support/tcp-proxy.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const never = new AbortController().signal;

/** The methods whose requests count towards the rate limit that the agents share. */
const writing = ["integration.insert", "integration.saveSignals"];

test("points forwarded by two agents are delivered by the remaining one, at one rate", async () => {
  using folder = temporaryFolder();
  await using servers = await openNatsServers();
  await using service = await testService();
  const runtime = testRuntime();
  const from = runtime.clock.now();
  await using opened = new AsyncDisposableStack();
  const agents = await Promise.all(
    ["gw.1", "gw.2"].map(async (name) => {
      const broker = opened.use(await openMqttBroker({ credentials: { username: "u", password: "p" } }));
      const home = folder.file(name);
      mkdirSync(home);
      const configuration = loadConfiguration(home, service.url, broker)
        .replace("name: drill", `name: ${name}, ownSignals: off`)
        .replaceAll("hall.{tag}", `${name}.{tag}`);
      const cluster = `cluster: { servers: ${JSON.stringify(servers.urls)} }\n`;
      const agent = opened.use(await startAgent({ folder: home, configuration: configuration + cluster }));
      await eventually(async () => (await agent.status()).sources[0]?.state === "online");
      return { name, agent, load: opened.use(await publishLoad(broker, 200)) };
    }),
  );
  const inserts = () => service.counters().get("integration.insert")?.requests ?? 0;
  await eventually(() => inserts() >= 3, 60_000);
  await service.pause();
  // Further points. They can reach the other agent only through the stream.
  const before = await Promise.all(agents.map(async ({ agent }) => (await agent.status()).sources[0]!.readings));
  for (const [i, { agent }] of agents.entries())
    await eventually(async () => (await agent.status()).sources[0]!.readings > before[i]! + 400);
  const published = await Promise.all(
    agents.map(async ({ name, load }) => {
      const messages = await load.end();
      await load.publishLast();
      return messages.map(([input, value]) => [input.replace("hall", name) as InputId, value] as const);
    }),
  );
  for (const { agent } of agents) await eventually(() => hasDelivered(agent), 60_000);

  const first = await eventually(async () => (await agents[0]!.agent.status()).cluster?.delivers);
  const killed = agents.find(({ name }) => name === first)!;
  const left = agents.find(({ name }) => name !== first)!;
  // A replica may lag behind for a moment.
  const { cluster: seen, upload } = await eventually(async () => {
    const status = await left.agent.status();
    return status.cluster?.stream?.replicasInPlace === 3 && status;
  });
  expect(upload.state).toBe("standby");
  expect(seen).toMatchObject({ hasQuorum: true, stream: { replicas: 3, replicasInPlace: 3 } });
  expect(seen?.stream?.messages).toBeGreaterThan(0);
  expect(seen?.agents.map(({ node, reads }) => [node, reads]).sort()).toEqual([
    ["gw.1", ["hall"]],
    ["gw.2", ["hall"]],
  ]);
  await killed.agent.kill();
  await service.resume();

  const reader = { url: service.url, integration, password, apiVersion: "1.1beta1", namespace: "platform" } as const;
  const missing = await eventually(async () => {
    if ((await left.agent.status()).upload.requests === 0) return undefined;
    const before = epochMicros(runtime.clock.now() + 60e6);
    const stored = await readBack(reader, { from, before }, runtime, never);
    const lost = published.flat().filter(([input, value]) => !stored.get(input)?.has(value));
    return lost.length === 0 ? lost : undefined;
  }, 90_000);
  expect(missing).toEqual([]);
  expect(published.map((messages) => messages.length > 400)).toEqual([true, true]);
  expect((await left.agent.status()).cluster).toMatchObject({ connected: true, delivers: left.name, members: 1 });
  // A command on any machine gets its share of the rate from the agent that delivers.
  const file = folder.file(`${killed.name}/tagferry.yaml`);
  const saved = await Promise.all([1, 2].map(() => command(["signals", "save", "-c", file])));
  expect(saved).toEqual([0, 0].map((status) => expect.objectContaining({ status, stderr: "" })));
  for (const method of writing)
    expect(service.counters().get(method)?.smallestSpacingMs ?? Infinity).toBeGreaterThanOrEqual(1_000);
  const shown = await eventually(async () => {
    const status = await command(["status", "--url", left.agent.page]);
    return status.stdout.includes("3 of 3 replicas in place") && status;
  });
  expect(shown.stdout).toMatch(new RegExp(`^cluster   connected to n\\d, ${left.name} delivers, 1 agent$`, "m"));
  expect(shown.stdout).toMatch(/^ +stream: .* of 8 GiB, .*3 of 3 replicas in place$/m);
  expect(shown.stdout).toMatch(new RegExp(`^ +${killed.name}: gone$`, "m"));
  expect(shown.stdout).toMatch(new RegExp(`^ +${left.name}: reads hall, tagferry `, "m"));
  const metrics = await eventually(async () => {
    const text = await (await fetch(new URL("/metrics", left.agent.page))).text();
    return text.includes("stream_replicas_in_place 3") && text;
  });
  for (const line of ["connected 1", "quorum 1", "delivering 1", "members 1", "stream_replicas_in_place 3"])
    expect(metrics).toContain(`\ntagferry_cluster_${line}\n`);
  expect(await left.agent.stop()).toBe(0);
});

/** Prints which loaded files have `nats` in their names. */
const hook = `import{registerHooks}from"node:module";registerHooks({load(u,c,n){if(u.includes("nats"))process.stderr.write("loaded "+u+"\\n");return n(u,c)}})`;
const nodeOptions = [...nodeFlags, `--import=data:text/javascript,${encodeURIComponent(hook)}`];

test.each([
  ["an agent that cannot reach the cluster stores, says so and does not deliver", true],
  ["an agent without a cluster delivers, and loads no client of NATS", false],
])("%s", async (_, clustered) => {
  using folder = temporaryFolder();
  await using service = await testService();
  await using agent = await startAgent({
    folder: folder.path,
    nodeOptions,
    configuration: `version: 1
agent: { name: gw1, dataDir: ${JSON.stringify(folder.file("data"))}, ownSignals: off }
service: { url: "${service.url}", integration: ${integration}, auth: { basic: { password: "${password}" } } }
http: { listen: "127.0.0.1:0" }
sources: { waves: { type: simulator, tags: [{ input: a, wave: counter, every: 50ms }] } }
${clustered ? 'cluster: { servers: ["nats://127.0.0.1:9"] }' : ""}
`,
  });
  const loaded = () => agent.log.map(({ msg }) => String(msg)).filter((msg) => msg.startsWith("loaded "));
  if (!clustered) {
    await eventually(async () => (await agent.status()).upload.points > 60);
    expect(await agent.status()).not.toHaveProperty("cluster");
    expect(loaded()).toEqual([]);
    const files = readdirSync(dirname(program)).filter((name) => name.endsWith(".js"));
    const withClient = files.filter((name) => readFileSync(join(dirname(program), name), "utf8").includes("$JS.API"));
    expect(withClient).toEqual(["nats-client.js"]);
    return;
  }
  // Without a cluster, an agent delivers three requests in this time.
  await eventually(async () => (await agent.status()).buffer.unsettledPoints > 60);
  const { cluster, upload, overall, warnings } = await agent.status();
  expect(cluster).toMatchObject({ connected: false, reason: expect.any(String) });
  expect(cluster?.delivers).toBeUndefined();
  expect(upload).toMatchObject({ state: "standby", requests: 0 });
  expect(overall).toMatchObject({ level: "warn", text: "Standby. Cluster unreachable." });
  expect(warnings.map(({ message }) => message)[0]).toEqual(
    expect.stringMatching(
      /^the cluster cannot be reached: .*; points stay in the buffer of this agent, which does not/,
    ),
  );
  expect(service.counters().size).toBe(0);
  expect(loaded()).toEqual([expect.stringMatching(/nats-client\.js$/)]);
  expect(agent.log.map(({ msg }) => msg)).toContain("cannot connect to the cluster");

  const file = folder.file("tagferry.yaml");
  const online = await command(["check", "--online", "-c", file]);
  expect(online.stdout).toMatch(/^cluster: nats:\/\/127\.0\.0\.1:9: .*refused/m);
  expect(online.stdout).not.toMatch(/^service:/m);
  expect(online.status).toBe(69);
  const save = await command(["signals", "save", "-c", file]);
  expect(save.stderr).toMatch(/nats:\/\/127\.0\.0\.1:9: .*refused/);
  expect(save.status).toBe(69);
  expect(service.counters().size).toBe(0);
  expect(await agent.stop()).toBe(0);
});

test("an agent that delivers and loses its way to the service leaves delivery to one that reaches it", async () => {
  using folder = temporaryFolder();
  await using servers = await openNatsServers({ count: 1 });
  await using service = await testService();
  const port = Number(new URL(service.url).port);
  await using opened = new AsyncDisposableStack();
  const ways = new Map<string, TcpProxy>();
  const agents = new Map<string, AgentProcess>();
  for (const name of ["gw1", "gw2"]) {
    const way = opened.use(await tcpProxy(port));
    ways.set(name, way);
    const home = folder.file(name);
    mkdirSync(home);
    const configuration = `version: 1
agent: { name: ${name}, dataDir: ${JSON.stringify(join(home, "data"))} }
service: { url: "http://127.0.0.1:${way.port}/v1", integration: ${integration}, auth: { basic: { password: ${password} } } }
http: { listen: "127.0.0.1:0" }
cluster: { servers: ${JSON.stringify(servers.urls)}, replicas: 1 }
sources:
  ${name}: { type: simulator, tags: [{ input: ${name}.sine, wave: sine, period: 60s, min: 0, max: 100, every: 1s }] }
`;
    agents.set(name, opened.use(await startAgent({ folder: home, configuration })));
  }
  const inserts = () => service.counters().get("integration.insert")?.requests ?? 0;
  const holder = async () => (await agents.values().next().value!.status()).cluster?.delivers;
  const first = await eventually(async () => inserts() >= 2 && (await holder()), 60_000);

  await ways.get(first)![Symbol.asyncDispose]();
  const other = first === "gw1" ? "gw2" : "gw1";
  await eventually(async () => (await holder()) === other, 120_000);
  const before = inserts();
  await eventually(() => inserts() >= before + 2, 60_000);
  expect(agents.get(first)!.log.map(({ msg }) => msg)).toContain(
    "this agent cannot reach the service; another one that can delivers instead",
  );
});
