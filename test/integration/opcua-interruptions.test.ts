// Interruptions of an OPC UA source lose no value as long as the server has kept it.
import { cpSync, existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import type { Clock } from "../../src/core/runtime.ts";
import type { Source } from "../../src/core/source.ts";
import { systemClock } from "../../src/lib/time/clock.ts";
import { eventually } from "../support/eventually.ts";
import { decoyCount, lineNamespace, type OpcuaServer, opcuaServer } from "../support/opcua-server.ts";
import { collect, openOpcuaSource, openTrusting } from "../support/opcua-source.ts";
import { testRuntime } from "../support/runtime.ts";
import { type TcpProxy, tcpProxy } from "../support/tcp-proxy.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

// Each wait in a test allows for a busy machine, and there are several in a row.
vi.setConfig({ testTimeout: 120_000 });
const folder = temporaryFolder();
const count = { node: `nsu=${lineNamespace};s=Count` };
let server: OpcuaServer;
let network: TcpProxy;
let states = 0;
let next = 0;

beforeAll(async () => {
  server = await opcuaServer({ folder: folder.file("server"), secure: true });
  network = await tcpProxy(server.port);
});
afterAll(async () => {
  await network[Symbol.asyncDispose]();
  await server[Symbol.asyncDispose]();
  folder[Symbol.dispose]();
});

/** A new state folder, as another agent would have. It copies the key, because generating one takes long. */
function freshState(): string {
  const [first, state] = [folder.file("state0/pki/own"), folder.file(`state${states++}`)];
  if (existsSync(first)) cpSync(first, `${state}/pki/own`, { recursive: true });
  return state;
}
const open = (
  stateDir: string,
  options = {},
  runtime = testRuntime(),
  tags: object[] = [count],
  shadowDir?: string,
): Promise<Source> =>
  openTrusting({
    stateDir,
    ...(shadowDir !== undefined && { shadowDir }),
    options: { url: `opc.tcp://127.0.0.1:${network.port}`, security: { mode: "none" }, ...options },
    tags: tags.map((tag) => ({ ...tag })),
    runtime,
  });

/** Sets Count to the next numbers, each as soon as the previous one is sampled. Returns them. */
async function countUp(many: number): Promise<number[]> {
  const numbers = Array.from({ length: many }, () => ++next);
  for (const number of numbers) {
    server.set("Count", number);
    await eventually(() => server.counted.has(number), 30_000);
  }
  return numbers;
}
const has = (line: { values(tag: number): unknown[] }, numbers: readonly number[]) =>
  eventually(() => {
    const missing = numbers.filter((number) => !line.values(0).includes(number));
    if (missing.length > 0) throw new Error(`missing ${missing.join()} of ${numbers.join()}`);
    return true;
  }, 30_000);

test("a cut that the session survives loses no value, and leaves no second session behind", async () => {
  const stateDir = freshState();
  const sessions = server.sessions;
  await using before = collect(await open(stateDir));
  await has(before, await countUp(2));
  network.cut();
  const missed = await countUp(10);
  expect(await before.failure).toMatchObject({ code: "SOURCE_UNREACHABLE" });
  await before[Symbol.asyncDispose]();
  network.restore();

  await using after = collect(await open(stateDir));

  expect(after.source.details?.()).toMatchObject({ subscription: "kept" });
  await has(after, [...missed, ...(await countUp(2))]);
  expect(server.sessions).toBe(sessions + 1);
});

test("delivered values without an acknowledgement are delivered again", async () => {
  const stateDir = freshState();
  await using before = collect(await open(stateDir), { acknowledge: false });
  const delivered = await countUp(3);
  await has(before, delivered);
  network.cut();
  await before.failure;
  await before[Symbol.asyncDispose]();
  network.restore();
  await using after = collect(await open(stateDir));
  await has(after, delivered);
});

test("when the session ended while the agent was stopped, the server transfers unacknowledged values and continues", async () => {
  const stateDir = freshState();
  const secure = { security: { mode: "signAndEncrypt" } };
  const subscriptions = server.subscriptions;
  const unacknowledged: number[] = [];
  {
    await using before = collect(await open(stateDir, secure), { acknowledge: false });
    unacknowledged.push(...(await countUp(3)));
    await has(before, unacknowledged);
  }
  server.endSessions("kept");
  await using after = collect(await open(stateDir, secure));
  expect(after.source.details?.()).toMatchObject({ subscription: "transferred" });
  // A single number: while two subscriptions sample the variable, one that only one of them sampled is not lost.
  await has(after, [...unacknowledged, ...(await countUp(1))]);
  await eventually(() => server.subscriptions === subscriptions + 1);
});

test("fast and slow tags are published each at its interval, and each subscription keeps its values", async () => {
  const stateDir = freshState();
  // The next keep-alive of a quiet subscription shows that there are no further values.
  const secure = { security: { mode: "signAndEncrypt" }, subscription: { keepAlive: "1s" } };
  const both = [count, { node: `nsu=${lineNamespace};s=Temp`, every: 1_000 }];
  const subscriptions = server.subscriptions;
  const unacknowledged: number[] = [];
  {
    await using before = collect(await open(stateDir, secure, testRuntime(), both), { acknowledge: false });
    expect(before.source.details?.()).toMatchObject({ publishing: "100 ms, 1000 ms", subscription: "new" });
    unacknowledged.push(...(await countUp(2)));
    server.set("Temp", 77);
    await has(before, unacknowledged);
    await eventually(() => before.values(1).includes(77));
  }
  server.endSessions("kept");
  {
    await using after = collect(await open(stateDir, secure, testRuntime(), both), { acknowledge: false });
    expect(after.source.details?.()).toMatchObject({ publishing: "100 ms, 1000 ms", subscription: "transferred" });
    await has(after, unacknowledged);
    await eventually(
      () => after.readings.some(({ tag, value, historical }) => tag === 1 && value === 77 && historical),
      30_000,
    );
    server.set("Temp", 78);
    await eventually(() => after.values(1).includes(78));
  }
  server.endSessions("kept");
  // The slow tag becomes a fast one. The values that its old subscription has kept arrive nevertheless.
  await using now = collect(await open(stateDir, secure, testRuntime(), [count, { ...both[1], every: 50 }]));
  expect(now.source.details?.()).toMatchObject({ publishing: "100 ms", subscription: "transferred" });
  await eventually(
    () => now.readings.some(({ tag, value, historical }) => tag === 1 && value === 78 && historical),
    30_000,
  );
  await eventually(() => server.subscriptions === subscriptions + 1);
});

test("a restart resumes session and subscription, and a removed source leaves neither", async () => {
  const stateDir = freshState();
  const [sessions, subscriptions] = [server.sessions, server.subscriptions];
  for (const subscription of ["new", "kept", "kept"]) {
    await using line = collect(await open(stateDir));
    expect(line.source.details?.()).toMatchObject({ subscription });
    await has(line, await countUp(1));
    await line[Symbol.asyncDispose]();
    expect([server.sessions, server.subscriptions]).toEqual([sessions + 1, subscriptions + 1]);
  }
  const options = { url: `opc.tcp://127.0.0.1:${network.port}`, security: { mode: "none" } };
  await (await openOpcuaSource({ stateDir, options, tags: [count], final: true }))[Symbol.asyncDispose]();
  expect([server.sessions, server.subscriptions]).toEqual([sessions, subscriptions]);
});

test("lost messages are republished in order, without waiting for the next keep-alive", async () => {
  const stateDir = freshState();
  const options = { subscription: { keepAlive: "5m" } };
  await using before = collect(await open(stateDir, options));
  await has(before, await countUp(1));
  network.muteDevice();
  const missed = await countUp(5);
  network.cut();
  await before.failure;
  await before[Symbol.asyncDispose]();
  network.restore();
  await using after = collect(await open(stateDir, options));
  await has(after, missed);
  const order = [...new Set(after.values(0).filter((value) => missed.includes(Number(value))))];
  expect(order).toEqual(missed);
});

test("a server that restarted with other namespace indexes gives the same variables", async () => {
  const stateDir = freshState();
  const own = await opcuaServer({ folder: folder.file("server"), before: ["urn:first"] });
  const { port } = own;
  const openAt = () =>
    openOpcuaSource({
      stateDir,
      options: { url: own.url, security: { mode: "none" } },
      tags: [count, { node: "ns=3;s=Count" }, { path: "2:Decoy" }],
    });
  await using before = collect(await openAt());
  await before.reading(({ tag, quality }) => tag === 0 && quality === "good");
  await before.reading(({ tag, quality }) => tag === 1 && quality === "good");
  await before.reading(({ tag, value }) => tag === 2 && value === decoyCount);
  await own[Symbol.asyncDispose]();
  expect(await before.failure).toMatchObject({ code: "SOURCE_UNREACHABLE" });
  await before[Symbol.asyncDispose]();
  await expect(openAt()).rejects.toMatchObject({ code: "SOURCE_UNREACHABLE" });

  await using again = await opcuaServer({ folder: folder.file("server"), port, before: ["urn:other", "urn:first"] });
  again.set("Count", 4_711);
  await using after = collect(await openAt());

  expect(after.source.details?.()).toMatchObject({ subscription: "new" });
  await after.reading(({ tag, value }) => tag === 0 && value === 4_711);
  const other = await after.reading(({ tag }) => tag === 1);
  expect(other).toMatchObject({ quality: "bad", reason: expect.stringContaining("namespace changed: ns=3 was") });
  const moved = await after.reading(({ tag }) => tag === 2);
  expect(moved).toMatchObject({
    quality: "bad",
    reason: expect.stringContaining("namespace changed: 2: was urn:first"),
  });
  // Decoy variables now have the identifiers and names of the former ones.
  expect(after.readings.filter(({ value }) => value === decoyCount)).toEqual([]);
});

test("the connection to a silent server is closed", async () => {
  const stateDir = freshState();
  const options = { subscription: { publishing: "50ms", keepAlive: "150ms" }, timeout: "500ms" };
  const clock = systemClock();
  let ahead = 0;
  const leaping: Clock = {
    now: () => clock.now(),
    monotonic: () => clock.monotonic() + ahead,
    async sleep(ms, signal) {
      for (const end = leaping.monotonic() + ms; leaping.monotonic() < end; )
        await clock.sleep(Math.min(20, ms), signal);
    },
  };
  // A short timeout for calls, because one call below times out. Opening has a longer one.
  const opened = await eventually(() => open(stateDir, options, testRuntime({ clock: leaping })), 25_000);
  await using line = collect(opened);
  await has(line, await countUp(1));
  network.muteDevice();
  // The clock leaps only now, so that a busy machine's delay does not end the connection earlier.
  ahead = 60_000;
  const failure = await line.failure;
  network.cut();
  network.restore();
  expect(failure).toMatchObject({ code: "SOURCE_UNREACHABLE", message: expect.stringContaining("silent") });
});

test("a probe during the agent's run takes no value from it", async () => {
  const stateDir = freshState();
  await using line = collect(await open(stateDir));
  // The source has started, and writes no further state.
  await has(line, await countUp(1));
  const path = `${stateDir}/session.json`;
  const record = JSON.parse(await readFile(path, "utf8"));
  const subscriptions = server.subscriptions;
  {
    await using probe = collect(await open(stateDir, {}, testRuntime(), [count], folder.file("probe")));
    expect(probe.source.details?.()).toMatchObject({ subscription: "new" });
    await has(probe, await countUp(1));
  }
  expect(server.subscriptions).toBe(subscriptions);
  expect(JSON.parse(await readFile(path, "utf8"))).toEqual(record);
  expect(record.subscriptions).toHaveLength(1);
  await has(line, await countUp(1));
});

test("a server that never answers is abandoned, without a connection left open", async () => {
  network.muteDevice();
  await expect(open(freshState(), { timeout: "500ms" })).rejects.toMatchObject({ code: "SOURCE_UNREACHABLE" });
  await eventually(() => network.connections === 0);
  network.restore();
});

/** A clock on which a minute takes 0.3 s. */
function hurriedClock(): Clock {
  const clock = systemClock();
  return {
    now: () => clock.now(),
    monotonic: () => clock.monotonic(),
    sleep: (ms, signal) => clock.sleep(ms / 200, signal),
  };
}

test("a node that appears later is monitored at the next retry, and a node that still fails is reported at once", async () => {
  await using line = collect(
    await openOpcuaSource({
      stateDir: freshState(),
      options: { url: server.url, security: { mode: "none" } },
      tags: [
        { path: "Line/Late" },
        { node: `nsu=${lineNamespace};s=Later` },
        { browse: "Line/N*", limit: 5 },
        { browse: "Line/T*" },
        { node: "nsu=urn:late;s=Latest" },
      ],
      runtime: testRuntime({ clock: hurriedClock() }),
    }),
  );
  await eventually(() => [0, 1, 2, 4].every((tag) => line.values(tag).length === 1));
  for (const name of ["Late", "Later", "New", "Torque"]) server.add(name);
  // Servers load namespaces while they start, and with a program.
  server.add("Latest", 7, "urn:late");
  await eventually(() => [0, 1, 2].every((tag) => line.values(tag).includes(1)));
  await line.reading(({ tag, value }) => tag === 4 && value === 7);
  // A pattern that has matched a node is resolved again as well, only less often.
  await line.reading(({ tag, captures, value }) => tag === 3 && captures["name"] === "Torque" && value === 1);
  await eventually(() =>
    ["Late", "Later", "New", "Torque", "Latest"].every((name) =>
      line.descriptions.some((one) => one.signal.name === name),
    ),
  );
  expect(line.readings.filter(({ quality }) => quality === "bad")).toHaveLength(4);
  expect(line.source.details?.()).toMatchObject({ items: 6, failed: 0 });
});

test("items that the server loses while it continues the subscription are monitored again, after a gap", async () => {
  await using line = collect(
    await openOpcuaSource({
      stateDir: freshState(),
      options: { url: server.url, security: { mode: "none" }, backfill: "off" },
      tags: [count, { node: `nsu=${lineNamespace};s=Temp` }],
      runtime: testRuntime({ clock: hurriedClock() }),
    }),
  );
  await has(line, await countUp(1));
  const gaps = line.gaps.length;
  server.dropItems();
  const value = ++next;
  server.set("Count", value);
  await has(line, [value]);
  await has(line, await countUp(1));
  const missing = line.gaps.slice(gaps);
  expect(missing).toContainEqual(expect.objectContaining({ tag: 0, state: "lost" }));
  // The other variable has not changed meanwhile.
  expect(missing.filter(({ tag }) => tag === 1)).toEqual([]);
  expect(line.source.details?.()).toMatchObject({ items: 2, failed: 0, subscription: "new" });
});

test("a node that the server deletes and creates again, as a program download does, gives values again", async () => {
  for (const name of ["Loaded", "Found"]) server.add(name);
  await using line = collect(
    await openOpcuaSource({
      stateDir: freshState(),
      options: { url: server.url, security: { mode: "none" } },
      tags: [{ node: `nsu=${lineNamespace};s=Loaded` }, { path: "Line/Found" }],
      runtime: testRuntime({ clock: hurriedClock() }),
    }),
  );
  await eventually(() => [0, 1].every((tag) => line.values(tag).includes(1)));
  for (const name of ["Loaded", "Found"]) server.remove(name);
  await line.reading(({ quality, tag }) => quality === "bad" && tag === 0);
  for (const name of ["Loaded", "Found"]) server.add(name, 2);
  await eventually(() => [0, 1].every((tag) => line.values(tag).includes(2)));

  expect(line.source.details?.()).toMatchObject({ items: 2, failed: 0 });
});
