// Another agent continues an OPC UA source from the state of the former agent, with the former agent's certificate.
import { cpSync, readdirSync } from "node:fs";
import { expect, test } from "vitest";
import { eventually } from "../support/eventually.ts";
import { lineNamespace, opcuaServer } from "../support/opcua-server.ts";
import { collect, openOpcuaSource, openTrusting } from "../support/opcua-source.ts";
import { testRuntime } from "../support/runtime.ts";
import { tcpProxy } from "../support/tcp-proxy.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const tags = [{ node: `nsu=${lineNamespace};s=Count` }];

test.each([
  ["without security the next agent continues the session and misses no value", "none", "kept"],
  [
    "with security the server transfers the subscription to the next agent, and no value is missing",
    "signAndEncrypt",
    "transferred",
  ],
])("%s", { timeout: 120_000 }, async (_, mode, subscription) => {
  using own = temporaryFolder();
  await using server = await opcuaServer({ folder: own.file("server"), secure: true });
  const setup = (agent: string) => ({
    stateDir: own.file(`${agent}/state`),
    sharedDir: own.file(`${agent}/shared`),
    identity: "plant",
    options: { url: server.url, security: { mode } },
    tags,
  });
  const values: number[] = [];
  const count = async (n: number) => {
    for (let i = 0; i < n; i++) {
      const value = 1_000 + values.length;
      values.push(value);
      server.set("Count", value);
      await eventually(() => server.counted.has(value));
    }
  };
  const former = setup("gw1");
  const next = setup("gw2");
  const line = collect(await openTrusting(former));
  await count(3);
  await eventually(() => values.every((value) => line.values(0).includes(value)));
  cpSync(former.stateDir, next.stateDir, { recursive: true });
  expect(readdirSync(next.stateDir)).toContain("session.json");
  // No agent reads now, as after a kill.
  await line[Symbol.asyncDispose]();
  await count(3);
  await using after = collect(await openTrusting(next));
  expect(after.source.details?.()).toMatchObject({ subscription });
  await count(1);
  await eventually(() => values.slice(3).every((value) => after.values(0).includes(value)), 30_000);
});

test.each([
  ["what a killed agent acknowledged after handing over its files is not reported as lost by the next agent", "gw2"],
  ["an agent that was killed reports nothing as lost when it starts again", "gw1"],
  ["what an agent acknowledged that was killed before it handed over is not reported as lost", "gw2", "gw2"],
])("%s", { timeout: 120_000 }, async (_, name, wroteFiles = "gw1") => {
  using own = temporaryFolder();
  await using server = await opcuaServer({ folder: own.file("server") });
  await using network = await tcpProxy(server.port);
  const setup = (agent: string) => ({
    agent,
    stateDir: own.file(`${agent}/state`),
    sharedDir: own.file(`${agent}/shared`),
    identity: "plant",
    options: {
      url: `opc.tcp://127.0.0.1:${network.port}`,
      security: { mode: "none" },
      subscription: { keepAlive: "1s" },
    },
    tags,
  });
  const handedOver = setup("gw2").stateDir;
  let last = 0;
  const countTo = async (value: number) => {
    while (last < value) {
      server.set("Count", ++last);
      await eventually(() => server.counted.has(last));
    }
  };
  // As after a kill, it saves nothing before the next one begins.
  await using former = collect(await openOpcuaSource({ ...setup("gw1"), agent: wroteFiles }));
  await countTo(3);
  await eventually(() => former.values(0).includes(3) && server.unacknowledged === 0);
  cpSync(setup("gw1").stateDir, handedOver, { recursive: true });
  await countTo(6);
  await eventually(() => former.values(0).includes(6) && server.unacknowledged === 0);
  network.cut();
  await former.failure;
  // More values than Publish requests wait at the server.
  await countTo(11);
  network.restore();
  const runtime = testRuntime();
  const takeover = name === "gw1" ? undefined : 1;
  await using after = collect(await openOpcuaSource({ ...setup(name), takeover, runtime }));
  expect(after.source.details?.()).toMatchObject({ subscription: "kept" });
  await countTo(12);
  await eventually(() => [7, 8, 9, 10, 11, 12].every((value) => after.values(0).includes(value)), 30_000);
  expect(after.gaps).toEqual([]);
  expect(runtime.metric("source_opcua_lost_notifications_total") ?? 0).toBe(0);

  // What the server loses later is reported.
  network.cut();
  await after.failure;
  await countTo(17);
  server.forget();
  network.restore();
  await using later = collect(await openOpcuaSource({ ...setup(name), takeover }));
  await countTo(18);
  await eventually(() => later.gaps.some(({ cause }) => cause === "overflow"), 30_000);
});

test("an agent that begins without the state of the former one does not report that no value was missing", {
  timeout: 120_000,
}, async () => {
  using own = temporaryFolder();
  await using server = await opcuaServer({ folder: own.file("server") });
  const stateDir = own.file("gw2/state");
  const setup = { stateDir, options: { url: server.url, security: { mode: "none" } }, tags };
  server.set("Count", 1);
  const first = collect(await openOpcuaSource(setup));
  // Undefined: the gap record counts the time since the former agent as lost.
  expect(first.source.recovery).toBeUndefined();
  await eventually(() => first.values(0).includes(1) && server.unacknowledged === 0);
  await first[Symbol.asyncDispose]();
  await using second = collect(await openOpcuaSource(setup));
  expect(second.source.recovery).toBeDefined();
});
