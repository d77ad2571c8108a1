// The OPC UA source with asyncua, a third-party stack: value, time and metadata, with security and a user.
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Asyncua, asyncua } from "../support/asyncua.ts";
import { eventually } from "../support/eventually.ts";
import { collect, openTrusting } from "../support/opcua-source.ts";
import { testRuntime } from "../support/runtime.ts";
import { type TcpProxy, tcpProxy } from "../support/tcp-proxy.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const folder = temporaryFolder();
const names = ["Temp", "Count", "Big", "Ratio", "State", "Running", "Mode"];
const node = (name: string) => ({ node: `nsu=urn:tagferry:test:line;s=${name}` });
let server: Asyncua;
let network: TcpProxy;
let states = 0;

beforeAll(async () => {
  server = await asyncua({ folder: folder.file("server"), history: ["Ratio", "Count"] });
  network = await tcpProxy(server.port);
}, 120_000);
afterAll(async () => {
  await network[Symbol.asyncDispose]();
  await server[Symbol.asyncDispose]();
  folder[Symbol.dispose]();
});

const freshState = () => folder.file(`state${states++}`);
const open = (
  stateDir: string,
  options: Readonly<Record<string, unknown>>,
  tags: readonly Readonly<Record<string, unknown>>[] = names.map(node),
) => openTrusting({ stateDir, options: { url: `opc.tcp://127.0.0.1:${network.port}`, ...options }, tags });

test("values, times and metadata arrive over the best security with a user", async () => {
  const login = { username: "reader", password: "rope" };
  await using line = collect(await open(freshState(), login));
  expect(line.source.details?.()).toMatchObject({ security: "signAndEncrypt, Aes256_Sha256_RsaPss", failed: 0 });
  await eventually(() => names.every((_, tag) => line.values(tag).length > 0));
  const seconds = Math.floor(Date.now() / 1_000) - 5;
  const values = [21.5, 4_000_000_000, -(2n ** 53n), 0.1, 2, true, "hand"];
  for (const [i, name] of names.entries())
    await server.set(name, typeof values[i] === "bigint" ? Number(values[i]) : values[i], seconds + 0.123_456);

  await eventually(() => names.every((_, tag) => line.values(tag).length > 1));

  const last = names.map((_, tag) => line.readings.findLast((reading) => reading.tag === tag));
  expect(last.map((reading) => reading?.value)).toEqual([21.5, 4_000_000_000, -(2n ** 53n), 0.1, 2, true, "hand"]);
  for (const reading of last)
    expect(reading).toMatchObject({ time: seconds * 1e6 + 123_456, clock: "device", quality: "good" });
  expect(line.descriptions[0]).toMatchObject({
    signal: { name: "Temp", description: "in the middle", engUnit: "°C" },
    range: { min: 0, max: 200 },
  });
  expect(line.descriptions[4]?.signal).toMatchObject({ type: "enum", enumValues: { 0: "Off", 1: "On", 2: "Fault" } });
}, 120_000);

test("paths and patterns find the same variables, and a bad node is reported by name", async () => {
  const tags = [{ path: "Line/Temp" }, { browse: "Line/*" }, { node: "ns=2;s=Nope" }];
  await using line = collect(await open(freshState(), { security: { mode: "none" } }, tags));
  await eventually(() => line.values(0).length > 0 && line.values(1).length >= names.length);
  expect(new Set(line.readings.filter(({ tag }) => tag === 1).map(({ captures }) => captures.name))).toEqual(
    new Set([...names, "Drive", "Grid", "Old"]),
  );
  expect(line.readings.find(({ tag }) => tag === 2)?.reason).toMatch(/^BadNodeIdUnknown/);
});

test("fields of a structure and elements of a matrix are read by the server's type definitions", async () => {
  const fields = ["Speed", "Total", "Axis.Position", "Axes[1].Position", "Levels[1]", "Mode"];
  const tags = [...fields.map((field) => ({ ...node("Drive"), field })), { ...node("Grid"), index: "1,2" }];
  await using line = collect(await open(freshState(), { security: { mode: "none" } }, tags));
  for (const [i, value] of [0.1, -(2n ** 53n) - 1n, 1.5, 3.5, 8, 1, 6].entries())
    expect(await line.reading(({ tag }) => tag === i)).toMatchObject({ value, quality: "good" });
});

test("fields of a structure described only in a type dictionary are read like the others", async () => {
  const fields = ["Speed", "Axis.Position", "Axes[1].Position", "Levels[1]"];
  const tags = fields.map((field) => ({ ...node("Old"), field }));
  await using line = collect(await open(freshState(), { security: { mode: "none" } }, tags));
  for (const [i, value] of [0.1, 1.5, 3.5, 8].entries())
    expect(await line.reading(({ tag }) => tag === i)).toMatchObject({ value, quality: "good" });
});

test("values discarded from a full queue without an overflow bit are noticed and filled", async () => {
  const stateDir = freshState();
  const options = { security: { mode: "none" }, subscription: { queue: 4, keepAlive: "1s" } };
  await using before = collect(await open(stateDir, options, [node("Count")]));
  expect(before.source.details?.()).toMatchObject({ weakness: expect.stringContaining("full queues discard") });
  await eventually(() => before.values(0).length > 0);
  const start = Date.now() / 1_000;
  network.cut();
  const missed = Array.from({ length: 30 }, (_, i) => 100 + i);
  for (const [i, value] of missed.entries()) await server.set("Count", value, start + i / 100);
  expect(await before.failure).toMatchObject({ code: "SOURCE_UNREACHABLE" });
  await before[Symbol.asyncDispose]();
  network.restore();
  await using after = collect(await open(stateDir, options, [node("Count")]));
  await eventually(() => after.gaps.some(({ cause, state }) => cause === "overflow" && state === "filled"), 60_000);
  expect(after.source.details?.()).toMatchObject({ subscription: "kept" });
  expect(missed.filter((value) => !after.values(0).includes(value))).toEqual([]);
}, 120_000);

test("a wrong password is refused", async () => {
  await expect(open(freshState(), { username: "reader", password: "guess" })).rejects.toMatchObject({
    code: "SOURCE_REFUSED",
  });
});

test("a cut of the network loses no value", async () => {
  const stateDir = freshState();
  const options = { security: { mode: "none" } };
  await using before = collect(await open(stateDir, options, [node("Count")]));
  await eventually(() => before.values(0).length > 0);
  network.cut();
  const missed = [101, 102, 103, 104, 105];
  for (const value of missed) await server.set("Count", value);
  expect(await before.failure).toMatchObject({ code: "SOURCE_UNREACHABLE" });
  await before[Symbol.asyncDispose]();
  network.restore();
  await using after = collect(await open(stateDir, options, [node("Count")]));
  // The source requests a republish of what was sent during the outage at once, since the next keep-alive may be lost
  // too.
  await eventually(() => missed.every((value) => after.values(0).includes(value)), 60_000);
  expect(after.source.details?.()).toMatchObject({ subscription: "kept" });
}, 120_000);

test("a server killed and restarted is read again, over a new connection", async () => {
  const stateDir = freshState();
  const options = { security: { mode: "none" } };
  const own = await asyncua({ folder: folder.file("server") });
  const at = (url: string) => openTrusting({ stateDir, options: { url, ...options }, tags: [node("Count")] });
  await using before = collect(await at(own.url));
  await eventually(() => before.values(0).length > 0);
  await own.kill();
  expect(await before.failure).toMatchObject({ code: "SOURCE_UNREACHABLE" });
  await before[Symbol.asyncDispose]();
  await using again = await asyncua({ folder: folder.file("server"), port: own.port });
  await again.set("Count", 7);
  await using after = collect(await at(again.url));
  await eventually(() => after.values(0).includes(7));
  expect(after.source.details?.()).toMatchObject({ subscription: "new" });
}, 120_000);

test("values recorded by a server while the agent was stopped are filled once, with their own times", async () => {
  const stateDir = freshState();
  const options = { security: { mode: "none" }, backfill: { maxGap: "1h" } };
  const tags = [node("Ratio"), node("Temp")];
  // Before the server started, because its own first value is recorded as well.
  const start = Math.floor(Date.now() / 1_000) - 600;
  await server.set("Ratio", 0.25, start);
  {
    await using before = collect(await open(stateDir, options, tags));
    await eventually(() => before.values(0).includes(0.25));
  }
  const missed = [1.5, 2.5, 3.5, 4.5].map((value, i) => ({ value, time: start + 1 + i + 0.000_25 }));
  for (const { value, time } of missed) await server.set("Ratio", value, time);
  await server.set("Ratio", 5.5, start + 10);

  const runtime = testRuntime();
  await using after = collect(
    await openTrusting({ stateDir, options: { url: server.url, ...options }, tags, runtime }),
  );
  await after.reading(({ tag, historical }) => tag === 0 && historical);

  const filled = after.readings.filter(({ tag, historical }) => tag === 0 && historical);
  expect(filled.map(({ value, time }) => ({ value, time }))).toEqual(
    missed.map(({ value, time }) => ({ value, time: Math.round(time * 1e6) })),
  );
  expect(after.readings.find(({ historical, tag }) => !historical && tag === 0)).toMatchObject({ value: 5.5 });
  expect(runtime.metric("source_opcua_backfilled_readings_total")).toBe(4);
  // Temp has no history.
  await eventually(() => runtime.metric("source_opcua_unfilled_gaps_total", { reason: "no history" }) <= 1);
}, 120_000);
