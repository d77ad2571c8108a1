// Messages, items or agent state are lost although the subscription continues. The source notices the missing values.
import { cpSync, rmSync } from "node:fs";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { checkOnline } from "../../src/cli/configure/check-online.ts";
import { load } from "../support/config.ts";
import { eventually } from "../support/eventually.ts";
import { hurriedClock } from "../support/hurried-clock.ts";
import { lineNamespace, type OpcuaServer, opcuaServer } from "../support/opcua-server.ts";
import { collect, openOpcuaSource } from "../support/opcua-source.ts";
import { testRuntime } from "../support/runtime.ts";
import { type TcpProxy, tcpProxy } from "../support/tcp-proxy.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

vi.setConfig({ testTimeout: 120_000 });
const folder = temporaryFolder();
let server: OpcuaServer;
let network: TcpProxy;
let states = 0;
let next = 100;

beforeAll(async () => {
  server = await opcuaServer({ folder: folder.file("server") });
  network = await tcpProxy(server.port);
});
afterAll(async () => {
  await network[Symbol.asyncDispose]();
  await server[Symbol.asyncDispose]();
  folder[Symbol.dispose]();
});

const open = (stateDir: string, subscription = {}) =>
  openOpcuaSource({
    stateDir,
    options: {
      url: `opc.tcp://127.0.0.1:${network.port}`,
      security: { mode: "none" },
      // A keep-alive contains the sequence number of the next message.
      subscription: { keepAlive: "300ms", ...subscription },
    },
    tags: [{ node: `nsu=${lineNamespace};s=Temp` }],
    // Reads the history after a quarter of the usual delays.
    runtime: testRuntime({ clock: hurriedClock(4) }),
  });

/** Sets Temp to the next two values, each with its own time. Only the history contains them. */
async function setUnseen(): Promise<readonly number[]> {
  const values = [++next, ++next];
  for (const value of values) {
    server.set("Temp", value);
    const at = Date.now();
    await eventually(() => Date.now() > at);
  }
  return values;
}

/** Sets Temp to the next value and waits until it is sampled. */
async function set(): Promise<number> {
  const value = ++next;
  server.set("Temp", value);
  await eventually(() => server.temps.has(value), 30_000);
  return value;
}

test("messages that the server dropped are noticed after the agent was killed, and filled from the history", async () => {
  const [stateDir, killed] = [folder.file(`state${states++}`), folder.file("killed")];
  const missed: number[] = [];
  {
    await using line = collect(await open(stateDir));
    const value = await set();
    await line.reading((reading) => reading.value === value);
    await eventually(() => server.unacknowledged === 0, 30_000);
    cpSync(stateDir, killed, { recursive: true });
    network.muteDevice();
    for (let i = 0; i < 3; i++) {
      missed.push(await set());
      await eventually(() => server.unacknowledged > i, 30_000);
    }
    network.cut();
    await line.failure;
  }
  server.forget();
  rmSync(stateDir, { recursive: true });
  cpSync(killed, stateDir, { recursive: true });
  network.restore();

  await using line = collect(await open(stateDir));

  expect(line.source.details?.()).toMatchObject({ subscription: "kept" });
  expect(line.source.recovery).toMatchObject({ how: "kept" });
  await eventually(() => line.gaps.some(({ state }) => state === "filled"), 30_000);
  expect(line.gaps[0]).toMatchObject({ cause: "overflow", state: "open" });
  await eventually(() => missed.every((value) => line.values(0).includes(value)), 30_000);
  // From now on the connection is undisturbed.
  const value = await set();
  await line.reading((reading) => reading.value === value);
});

test("items that the server lost are monitored again, and their missed values are filled", async () => {
  const stateDir = folder.file(`state${states++}`);
  {
    await using line = collect(await open(stateDir));
    const value = await set();
    await line.reading((reading) => reading.value === value);
    network.cut();
    await line.failure;
  }
  server.dropItems();
  const missed = await setUnseen();
  network.restore();
  await using line = collect(await open(stateDir));
  expect(line.source.details?.()).toMatchObject({ subscription: "kept", items: 1 });
  await eventually(() => line.gaps.some(({ state }) => state === "filled"), 30_000);
  await eventually(() => missed.every((value) => line.values(0).includes(value)), 30_000);
  const value = await set();
  await line.reading((reading) => reading.value === value);
});

test("an agent killed before it persisted a gap still searches for the missing values", async () => {
  const [stateDir, copy] = [folder.file(`state${states++}`), folder.file("begun")];
  {
    await using line = collect(await open(stateDir));
    const value = await set();
    await line.reading((reading) => reading.value === value);
  }
  server.endSessions();
  const missed = await setUnseen();
  // Subscribes and is killed before it consumes a value.
  const killed = await open(stateDir);
  expect(killed.details?.()).toMatchObject({ subscription: "new" });
  cpSync(stateDir, copy, { recursive: true });
  network.cut();
  await killed[Symbol.asyncDispose]();
  rmSync(stateDir, { recursive: true });
  cpSync(copy, stateDir, { recursive: true });
  network.restore();
  await using line = collect(await open(stateDir));
  expect(line.source.recovery).toEqual({ how: "history" });
  await eventually(() => line.gaps.some(({ state }) => state === "filled"), 30_000);
  await eventually(() => missed.every((value) => line.values(0).includes(value)), 30_000);
});

test("a queue of one value cannot report discarded values: the status shows this, and a cut is a gap", async () => {
  const stateDir = folder.file(`state${states++}`);
  {
    await using line = collect(await open(stateDir, { queue: 1 }));
    expect(line.source.details?.()).toMatchObject({ unqueued: 1 });
    const value = await set();
    await line.reading((reading) => reading.value === value);
    network.cut();
    await line.failure;
  }
  const missed = [await set(), await set(), await set()];
  network.restore();
  await using line = collect(await open(stateDir, { queue: 1 }));
  expect(line.source.details?.()).toMatchObject({ subscription: "kept" });
  await eventually(() => line.gaps.some(({ state }) => state === "filled"), 30_000);
  await eventually(() => missed.every((value) => line.values(0).includes(value)), 30_000);
});

test("unconfigured partners of a redundant server are named in the status and by check --online", async () => {
  server.partner(["urn:plc:b"]);
  const advice = "the server is one of a redundant set (hot); servers does not have urn:plc:b";
  await using line = collect(await open(folder.file(`state${states++}`)));
  expect(line.source.details?.()).toMatchObject({ redundancy: "hot", advice });
  const config = await load(`version: 1
agent: { name: gw1, dataDir: ${folder.file("data")} }
service: { url: http://127.0.0.1:1/v1, integration: c8ktonqsahsmemfs7lv0, auth: { basic: { password: x } } }
sources:
  line:
    type: opcua
    url: ${server.url}
    security: { mode: none }
    tags: [{ input: temp, node: "nsu=${lineNamespace};s=Temp" }]
`);
  const reached = await checkOnline(config, async () => [], new AbortController().signal);
  expect(reached.find(({ what }) => what === "line")).toMatchObject({ ok: true, advice });
});
