// Sources that several agents can read: one agent reads each source, and another takes over when it is gone.
import { mkdirSync } from "node:fs";
import { expect, test } from "vitest";
import { epochMicros, type InputId } from "../../src/core/point.ts";
import { readBack } from "../../src/demo/read-back.ts";
import { type AgentProcess, startAgent } from "../support/agent-process.ts";
import { command } from "../support/command.ts";
import { eventually } from "../support/eventually.ts";
import { modbusDevice } from "../support/modbus-device.ts";
import { openMosquitto } from "../support/mosquitto.ts";
import { publishLoad } from "../support/mqtt-load.ts";
import { openNatsServers } from "../support/nats-servers.ts";
import { lineNamespace, type OpcuaServer, opcuaServer } from "../support/opcua-server.ts";
import { pollTap } from "../support/poll-tap.ts";
import { testRuntime } from "../support/runtime.ts";
import { integration, password, testService } from "../support/service.ts";
import { resume, suspend } from "../support/suspend.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const never = new AbortController().signal;
/** The maximum time between the end of an agent and the takeover of its sources, as docs/scaling.md promises. */
const takeoverMs = 10_000;

/** Three servers, a service, a broker, a Modbus device, and agents whose configurations differ only in their names. */
async function plant() {
  await using opened = new AsyncDisposableStack();
  const folder = opened.use(temporaryFolder());
  const servers = opened.use(await openNatsServers());
  const service = opened.use(await testService());
  const broker = opened.use(await openMosquitto());
  const device = opened.use(await modbusDevice());
  device.unit(1).set("hr", 0, [7]);
  const tap = opened.use(await pollTap(device.port));
  const line = opened.use(await opcuaServer({ folder: folder.file("opcua") }));
  const configurationOf = (name: string) => `version: 1
agent: { name: ${name}, dataDir: ${JSON.stringify(folder.file(`${name}/data`))}, ownSignals: off }
service: { url: "${service.url}", integration: ${integration}, auth: { basic: { password: "${password}" } } }
http: { listen: "127.0.0.1:0" }
cluster: { servers: ${JSON.stringify(servers.urls)} }
sources:
  hall:
    type: mqtt
    run: { prefer: gw1 }
    url: ${broker.url}
    username: ${broker.username}
    password: ${broker.password}
    tags:
      - { input: "hall.{tag}", topic: "hall/{tag}", value: $.v, time: { at: $.t, format: unixMs } }
  meter:
    type: modbus
    run: { prefer: gw1 }
    url: tcp://127.0.0.1:${tap.port}
    # The device runs in the process of the test, which a loaded machine may delay for more than the default of 1 s.
    timeout: 30s
    tags: [{ input: meter.power, at: "hr:0", every: 200ms }]
  line:
    type: opcua
    run: { prefer: gw1 }
    url: ${line.url}
    security: { mode: none }
    subscription: { queue: 100 }
    every: 50ms
    tags: [{ input: line.count, node: "nsu=${lineNamespace};s=Count" }]
`;
  const owned = opened.move();
  async function start(name: string): Promise<AgentProcess> {
    mkdirSync(folder.file(name), { recursive: true });
    const agent = await startAgent({ folder: folder.file(name), configuration: configurationOf(name) });
    return owned.use(agent);
  }
  const file = (name: string) => folder.file(`${name}/tagferry.yaml`);
  return {
    servers,
    service,
    broker,
    device,
    tap,
    line,
    start,
    file,
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

/** Sets Count to each of these values in turn, as soon as the server has sampled the previous one. */
async function countUp(line: OpcuaServer, from: number, to: number): Promise<number[]> {
  const values = Array.from({ length: to - from + 1 }, (_, i) => from + i);
  for (const value of values) {
    line.set("Count", value);
    await eventually(() => line.counted.has(value));
  }
  return values;
}

async function reads(agent: AgentProcess): Promise<readonly string[]> {
  return (await agent.status()).sources.filter(({ state }) => state === "online").map(({ name }) => name);
}

const all = ["hall", "meter", "line"];
const readsAll = async (agent: AgentProcess) => (await reads(agent)).length === all.length;

test("when the agent that reads is killed, another one reads within 10 s, and no MQTT message is lost", async () => {
  await using site = await plant();
  const runtime = testRuntime();
  const from = runtime.clock.now();
  const [gw1, gw2] = [await site.start("gw1"), await site.start("gw2")];
  await eventually(() => readsAll(gw1), 60_000);
  await using load = await publishLoad(site.broker, 100);
  await eventually(async () => (await gw1.status()).sources[0]!.readings > 300);
  const shown = await gw2.status();
  expect(shown.sources.map(({ name, state, details }) => [name, state, details["reader"]])).toEqual(
    all.map((name) => [name, "standby", "gw1"]),
  );
  const counts = await countUp(site.line, 1, 10);
  // What the killed agent has on disk and has not passed to the cluster waits for its restart.
  await gw1.kill();
  const killedAt = performance.now();
  const polled = site.tap.requests.length;
  // No agent reads the server at this time.
  counts.push(...(await countUp(site.line, 11, 15)));
  await eventually(() => readsAll(gw2), 60_000);
  await eventually(() => site.tap.requests.length > polled);
  const tookMs = site.tap.requests[polled]!.at - killedAt;
  expect(tookMs).toBeLessThan(takeoverMs);
  const gapsOf = async (agent: AgentProcess) => {
    const { stdout } = await command(["gaps", "--json", "--url", agent.page]);
    return (JSON.parse(stdout) as { gaps: { source: string; cause: string; state: string; reason: string }[] }).gaps;
  };
  const rows = await eventually(async () => {
    const gaps = await gapsOf(gw2);
    return gaps.length >= all.length && gaps.every(({ state }) => state === "filled" || state === "lost")
      ? gaps
      : undefined;
  }, 30_000);
  const row = (source: string) => rows.find((gap) => gap.source === source && gap.cause === "takeover");
  const cause = { cause: "takeover", reason: "gw1 read the source until then" };
  expect(row("hall")).toMatchObject({ ...cause, state: "filled", outcome: "the broker had kept the session" });
  expect(row("line")).toMatchObject({ ...cause, state: "filled", outcome: "the server had kept the subscription" });
  expect(row("meter")).toMatchObject({ ...cause, state: "lost" });
  await eventually(async () => (await gw2.status()).sources.find(({ name }) => name === "hall")!.readings > 300);
  const published = await load.end();
  const back = await site.start("gw1");
  const reader = {
    url: site.service.url,
    integration,
    password,
    apiVersion: "1.1beta1",
    namespace: "platform",
  } as const;
  const lost = await eventually(async () => {
    const stored = await readBack(reader, { from, before: epochMicros(runtime.clock.now() + 60e6) }, runtime, never);
    const counted = counts.map((value) => ["line.count" as InputId, value] as const);
    const missing = [...published, ...counted].filter(([input, value]) => !stored.get(input)?.has(value));
    return missing.length === 0 ? missing : undefined;
  }, 90_000);
  expect(lost).toEqual([]);
  expect(published.length).toBeGreaterThan(600);
  // gw1 acknowledged values of line after it had last handed over its position. They were on its disk, not lost.
  expect((await gapsOf(gw2)).map(({ cause }) => cause)).toEqual(all.map(() => "takeover"));
  // gw1 is preferred, but only after it has run for a minute.
  expect(await reads(back)).toEqual([]);
});

test("an agent that is suspended and resumes does not poll the device again, nor take the session back", async () => {
  await using site = await plant();
  const [gw1, gw2] = [await site.start("gw1"), await site.start("gw2")];
  await eventually(() => readsAll(gw1), 60_000);
  const polled = site.tap.requests.length;
  const former = await eventually(() => site.tap.requests.at(-1)?.connection);
  await suspend(gw1.pid);
  try {
    await eventually(() => readsAll(gw2), 60_000);
    await eventually(() => site.tap.requests.some(({ connection }) => connection !== former));
  } finally {
    resume(gw1.pid);
  }
  const first = site.tap.requests.find(({ connection }) => connection !== former)!.at;
  await eventually(() => site.tap.open === 1);
  await eventually(() => site.tap.requests.at(-1)!.at > first + 5_000, 30_000);
  const late = site.tap.requests.slice(polled).filter(({ connection, at }) => connection === former && at > first);
  expect(late).toEqual([]);
  expect(await reads(gw1)).toEqual([]);
  expect(await reads(gw2)).toEqual(all);
  const { sources } = await gw2.status();
  expect(sources.map(({ reconnects }) => reconnects)).toEqual([0, 0, 0]);
  expect(gw1.log.map(({ code }) => code)).not.toContain("SOURCE_TAKEN_OVER");
});

interface Shown {
  readonly delivers?: string;
  readonly members: readonly { readonly node: string; readonly alive: boolean; readonly drained: boolean }[];
  readonly sources: readonly { readonly name: string; readonly reader?: string; readonly movedTo?: string }[];
}

test("an agent is drained, a source moved and a member removed by commands, also of a box whose agent is stopped", {
  timeout: 480_000,
}, async () => {
  await using site = await plant();
  const [gw1, gw2, gw3] = [await site.start("gw1"), await site.start("gw2"), await site.start("gw3")];
  await eventually(() => readsAll(gw1), 60_000);
  await eventually(async () => (await gw1.status()).cluster?.members === 3, 60_000);
  expect(await gw3.stop()).toBe(0);
  const cluster = async (...words: readonly string[]) => {
    const ran = await command(["cluster", ...words, "-c", site.file("gw3")]);
    return ran.status === 0 ? ran.stdout : ran.stderr;
  };
  const shown = async () => {
    const text = await cluster("status", "--json");
    expect(text).toMatch(/^\{/);
    return JSON.parse(text) as Shown;
  };
  const readers = async () => (await shown()).sources.map(({ name, reader }) => [name, reader]);
  const states = ({ members }: Shown) => members.map(({ node, alive, drained }) => [node, alive, drained]);
  expect(states(await shown())).toEqual([
    ["gw1", true, false],
    ["gw2", true, false],
    ["gw3", false, false],
  ]);
  expect(await cluster("move", "meter", "gw9")).toContain("no agent of the cluster is named gw9: it has gw1, gw2, gw3");
  expect(await cluster("move", "meter", "gw3")).toContain("gw3 is not alive");
  expect(await cluster("move", "pump", "gw2")).toContain("no agent has a source pump that others can read");
  expect(await cluster("remove", "gw1")).toContain("gw1 is alive");

  expect(await cluster("move", "meter", "gw2")).toContain("gw2 reads meter while it runs");
  expect(await readers()).toEqual([
    ["hall", "gw1"],
    ["line", "gw1"],
    ["meter", "gw2"],
  ]);
  expect(await cluster("drain", "gw2")).toContain("gw2 is drained: it does not deliver");
  expect(await readers()).toEqual(all.toSorted().map((name) => [name, "gw1"]));
  expect((await shown()).delivers).toBe("gw1");
  // A drained agent stays drained after a restart.
  expect(await gw2.stop()).toBe(0);
  const again = await site.start("gw2");
  expect(await cluster("drain", "gw1")).toContain(
    "gw1 is drained, but goes on: no other agent is alive and not drained",
  );
  expect(await cluster("drain", "gw2", "--undo")).toContain("gw2 is not drained any more");
  await eventually(() => readsAll(again), 60_000);
  await eventually(async () => (await again.status()).cluster?.delivers === "gw2", 60_000);
  expect(await reads(gw1)).toEqual([]);
  expect(await cluster("drain", "gw1", "--undo")).toContain("gw1 is not drained any more");
  expect(await cluster("move", "meter", "--undo")).toContain("meter is read by the agent that run prefers");
  expect(await cluster("move", "meter", "--undo")).toContain("meter was not moved");
  // The preferred agent must have been alive for a minute without a break, as the others see it.
  await eventually(() => readsAll(gw1), 150_000);
  expect(await cluster("remove", "gw3")).toContain("gw3 is removed");
  expect(states(await shown())).toEqual([
    ["gw1", true, false],
    ["gw2", true, false],
  ]);
});
