// The OPC UA source with a real server: which values arrive, what is refused, and how a bad node affects the others.
import { join } from "node:path";
import { StatusCodes } from "node-opcua-client";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { BrowsedNode } from "../../src/core/commissioning.ts";
import { epochMicros } from "../../src/core/point.ts";
import { systemClock } from "../../src/lib/time/clock.ts";
import { browseOpcua } from "../../src/source/opcua/browse/browse.ts";
import { trustCertificate } from "../../src/source/opcua/certificates/trust.ts";
import { opcuaDriver } from "../../src/source/opcua/driver.ts";
import { eventually } from "../support/eventually.ts";
import { lineNamespace, type OpcuaServer, opcuaServer, refuseService, user } from "../support/opcua-server.ts";
import { collect, openOpcuaSource, openTrusting } from "../support/opcua-source.ts";
import { expectMode } from "../support/platform.ts";
import { testRuntime } from "../support/runtime.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const folder = temporaryFolder();
const stateDir = folder.file("state");
const insecure = { security: { mode: "none" } };
const node = (name: string) => ({ node: `nsu=${lineNamespace};s=${name}` });
let server: OpcuaServer;

beforeAll(async () => {
  server = await opcuaServer({ folder: folder.file("server"), secure: true });
});
afterAll(async () => {
  await server[Symbol.asyncDispose]();
  folder[Symbol.dispose]();
});

const open = (tags: Readonly<Record<string, unknown>>[], options: Readonly<Record<string, unknown>> = insecure) =>
  openOpcuaSource({ stateDir, options: { url: server.url, ...options }, tags });

test("values of every type arrive with the device's time, including the first ones", async () => {
  const names = ["Temp", "Count", "Big", "Ratio", "State", "Running"] as const;
  await using line = collect(await open(names.map(node)));
  await eventually(() => names.every((_, tag) => line.values(tag).length > 0));
  const at = new Date("2026-03-01T12:00:00.123Z");
  const values = [21.5, 4_000_000_000, [0xffff_ffff, 0xffff_fff6], 0.1, 2, true];
  for (const [i, name] of names.entries()) server.set(name, values[i], at);

  await eventually(() => names.every((_, tag) => line.values(tag).length > 1));

  const last = names.map((_, tag) => line.readings.findLast((reading) => reading.tag === tag));
  expect(last.map((reading) => reading?.value)).toEqual([21.5, 4_000_000_000, -10n, 0.1, 2, true]);
  expect(line.source.retainedBy).toBe("the server");
  for (const reading of last)
    expect(reading).toMatchObject({ time: at.getTime() * 1_000, clock: "device", quality: "good", historical: false });
});

// The mapping stores the heartbeat of a quiet tag with such a confirmation.
test.for([
  ["next to one that changes all the time", { subscription: { keepAlive: "10m" } }, [node("Count")]],
  ["that is polled", { mode: "poll" }, []],
] as const)("a quiet value %s is confirmed again and again", async ([, more, busy]) => {
  await using line = collect(await open([node("Temp"), ...busy], { ...insecure, ...more }));
  let count = 0;
  await eventually(() => {
    server.set("Count", count++);
    return line.confirmationsOf(0) >= 3;
  });
});

test("messages of one subscription do not confirm the values of another one, whose changes may not be sent yet", async () => {
  const options = { ...insecure, subscription: { keepAlive: "10m" } };
  await using line = collect(
    await open(
      [
        { ...node("Temp"), every: 1_000 },
        { ...node("Count"), every: 50 },
      ],
      options,
    ),
  );
  let count = 0;
  await eventually(() => {
    server.set("Count", count++);
    return line.confirmationsOf(1) >= 5;
  });
  // By a first keep-alive and the message with the first value.
  expect(line.confirmationsOf(0)).toBeLessThanOrEqual(2);
});

test("units, ranges, names and states arrive as descriptions", async () => {
  await using line = collect(await open([node("Temp"), node("State")]));
  await eventually(() => line.descriptions.length === 2);
  expect(line.descriptions[0]).toEqual({
    tag: 0,
    captures: {},
    address: `nsu=${lineNamespace};s=Temp`,
    signal: { name: "Oven temperature", description: "in the middle", engUnit: "°C" },
    range: { min: 0, max: 200 },
  });
  expect(line.descriptions[1]?.signal).toEqual({
    name: "State",
    type: "enum",
    enumValues: { 0: "Off", 1: "On", 2: "Fault" },
  });
});

test("a variable whose unit changes is described again", async () => {
  await using line = collect(await open([node("Temp"), node("State")]));
  await eventually(() => line.descriptions.length === 2);
  server.setUnit("K");
  server.set("Temp", 300);
  await eventually(() => line.descriptions.length === 3);
  expect(line.descriptions[2]).toMatchObject({ tag: 0, signal: { engUnit: "K" } });
  server.setUnit("°C");
});

test("nodes are found by NodeId, by path and by pattern", async () => {
  await using line = collect(
    await open([
      { node: "ns=1;i=1" },
      { path: "Line/Count" },
      { path: "/Objects/Line/2:Temp" },
      { path: `Line/Nowhere` },
      { browse: "Line/R*" },
      { browse: "L*/**", limit: 3 },
    ]),
  );
  await eventually(() => line.values(5).length >= 3 && line.values(4).length >= 2 && line.values(2).length > 0);
  expect(new Set(line.readings.filter(({ tag }) => tag === 4).map(({ captures }) => captures.name))).toEqual(
    new Set(["Ratio", "Running"]),
  );
  expect(new Set(line.readings.filter(({ tag }) => tag === 5).map(({ captures }) => captures.path)).size).toBe(3);
  expect(line.readings.find(({ tag }) => tag === 3)?.reason).toMatch(/^BadNoMatch/);
  expect(line.values(1).length).toBeGreaterThan(0);
});

test("a bad node gives a bad reading with its reason and does not affect others", async () => {
  await using line = collect(
    await open([node("Nope"), { node: "nsu=urn:elsewhere;s=Temp" }, node("List"), node("Count")]),
  );
  await line.reading(({ tag, quality }) => tag === 3 && quality === "good");
  const bad = (tag: number) => line.reading((reading) => reading.tag === tag);
  expect(await bad(0)).toMatchObject({ value: undefined, quality: "bad", clock: "agent" });
  expect((await bad(0)).reason).toMatch(/^BadNodeIdUnknown: /);
  expect((await bad(1)).reason).toBe("the server has no namespace urn:elsewhere");
  expect((await bad(2)).reason).toBe("an array, not one value; give an index");
});

test("an element of an array is a separate value", async () => {
  await using line = collect(await open([0, 1, 7].map((index) => ({ ...node("List"), index }))));
  server.set("List", [4, 5]);
  await line.reading(({ tag, value }) => tag === 0 && value === 4);
  await line.reading(({ tag, value }) => tag === 1 && value === 5);
  expect((await line.reading(({ tag }) => tag === 2)).reason).toBe("the array has no element 7");
});

test("changes within a dead band stay at the server; without dead-band support every change arrives, and status shows it", async () => {
  await using line = collect(
    await open([
      { ...node("Temp"), deadband: 5 },
      { ...node("Temp"), deadband: "10%" },
      { ...node("Running"), deadband: 1 },
      { ...node("Ratio"), deadband: "1%" },
    ]),
  );
  expect(line.source.details?.()).toMatchObject({ items: 4, failed: 0, unfiltered: 2 });
  for (const number of [100, 104, 106, 113, 127]) {
    server.set("Temp", number);
    server.set("Ratio", number);
    await line.reading(({ tag, value }) => tag === 3 && value === number);
  }
  await line.reading(({ tag, value }) => tag === 1 && value === 127);
  await line.reading(({ tag, value }) => tag === 0 && value === 127);
  expect(line.values(0).slice(-4)).toEqual([100, 106, 113, 127]);
  expect(line.values(1).slice(-2)).toEqual([100, 127]);
});

test("an unchanged value with a new time is stored only if the tag is configured so", async () => {
  await using line = collect(await open([{ ...node("Temp"), trigger: "timestamp" }, node("Temp")]));
  for (const [i, number] of [80, 80, 81].entries()) {
    server.set("Temp", number);
    await eventually(() => line.values(0).filter((value) => value === number).length > i % 2);
  }
  await line.reading(({ tag, value }) => tag === 1 && value === 81);
  expect(line.values(0).slice(-3)).toEqual([80, 80, 81]);
  expect(line.values(1).slice(-2)).toEqual([80, 81]);
  const times = line.readings.filter(({ tag }) => tag === 0).map(({ time }) => time);
  expect(new Set(times).size).toBe(times.length);
});

test("a bad status arrives with its name and without a value", async () => {
  await using line = collect(await open([node("Ratio")]));
  server.set("Ratio", 1);
  await line.reading(({ value }) => value === 1);
  server.break("Ratio");
  const reading = await line.reading(({ quality }) => quality === "bad");
  expect(reading).toMatchObject({ value: undefined, reason: "the server reports BadNoCommunication" });
});

test("security None is used only when configured, and never without a warning", async () => {
  const none = await opcuaServer({ folder: folder.file("server") });
  await using _none = none;
  await expect(openOpcuaSource({ stateDir, options: { url: none.url }, tags: [] })).rejects.toMatchObject({
    code: "SOURCE_REFUSED",
    message: expect.stringContaining("security: { mode: none }"),
  });
  const runtime = testRuntime();
  await using line = collect(
    await openOpcuaSource({ stateDir, options: { url: none.url, ...insecure }, tags: [node("Temp")], runtime }),
  );
  expect(line.source.details?.()).toMatchObject({
    security: "none, None",
    warning: expect.stringContaining("no security"),
  });
  expect(runtime.lines.filter(({ level }) => level === "warn").map(({ message }) => message)).toEqual([
    "insecure connection",
  ]);
});

test("an unknown server certificate is refused with the command that trusts it, and accepted once trusted", async () => {
  const refusal = await open([node("Temp")], {}).catch((error: unknown) => error);
  expect(refusal).toMatchObject({ code: "SOURCE_REFUSED" });
  const thumbprint = /tagferry trust accept ([0-9a-f]{40})/.exec(String(refusal))?.[1];
  expect(thumbprint).toBeDefined();

  expect(await trustCertificate(stateDir, thumbprint ?? "")).toBe(true);

  await using line = collect(await open([node("Temp")], { username: user.name, password: user.password }));
  expect(line.source.details?.()).toMatchObject({ security: "signAndEncrypt, Aes256_Sha256_RsaPss" });
  await line.reading(({ quality }) => quality === "good");
  expectMode(join(stateDir, "pki/own/private/private_key.pem"), 0o600);
});

test("a wrong password is refused with that reason", async () => {
  const wrong = { ...insecure, username: user.name, password: "guess" };
  await expect(open([node("Temp")], wrong)).rejects.toMatchObject({
    code: "SOURCE_REFUSED",
    message: expect.stringContaining("the server refuses this user or password"),
  });
});

test("no session is left when the server refuses the login", async () => {
  const before = server.sessions;
  await expect(open([node("Temp")], { ...insecure, username: "nobody", password: "x" })).rejects.toMatchObject({
    code: "SOURCE_REFUSED",
  });
  await eventually(() => server.sessions === before);
});

test("browsing lists the tree with values, units and the tags that would read them", async () => {
  server.set("Temp", 33);
  const before = server.sessions;
  const nodes: BrowsedNode[] = [];
  for await (const found of browseOpcua({ url: server.url }, testRuntime(), AbortSignal.timeout(10_000)))
    nodes.push(found);
  const line = nodes.findIndex(({ name }) => name === "Line");
  expect(nodes[line]).toMatchObject({ depth: 0 });
  expect(nodes[line + 1]).toEqual({
    address: `nsu=${lineNamespace};s=Temp`,
    name: "Temp",
    depth: 1,
    value: 33,
    type: "Double",
    signal: { name: "Oven temperature", description: "in the middle", engUnit: "°C" },
    tag: { node: `nsu=${lineNamespace};s=Temp` },
  });
  for (const { tag } of nodes) expect(opcuaDriver.tag.safeParse(tag).success).toBe(true);
  expect(server.sessions).toBe(before);
});

test("browsing with the security and the certificates of a source needs the trust that the source has", async () => {
  const security = { mode: "signAndEncrypt" };
  const look = async (target: { readonly sharedDir?: string }) => {
    const names: string[] = [];
    const nodes = browseOpcua({ url: server.url, security, ...target }, testRuntime(), AbortSignal.timeout(10_000));
    for await (const { name } of nodes) names.push(name);
    return names;
  };
  await expect(look({})).rejects.toMatchObject({
    code: "SOURCE_REFUSED",
    message: expect.stringContaining("not trusted"),
  });
  await (await openTrusting({ stateDir, options: { url: server.url, security }, tags: [] }))[Symbol.asyncDispose]();
  expect(await look({ sharedDir: stateDir })).toContain("Temp");
});

test("a subscription gets at most the server's limit of items, and another one the rest", async () => {
  await using small = await opcuaServer({ folder: folder.file("server"), maxItems: 2 });
  const names = ["Temp", "Count", "Running", "Ratio", "Big"];
  await using line = collect(
    await openOpcuaSource({ stateDir, options: { url: small.url, ...insecure }, tags: names.map(node) }),
  );
  expect(line.source.details?.()).toMatchObject({ items: 5, polled: 0, failed: 0, publishing: "100 ms" });
  expect(small.subscriptions).toBe(3);
  await eventually(() => names.every((_, tag) => line.values(tag).length > 0));
});

test("nodes that the server cannot monitor are polled, and all nodes when configured so", async () => {
  await using small = await opcuaServer({ folder: folder.file("server"), maxItemsInAll: 1 });
  const names = ["Temp", "Count", "Running"];
  for (const [mode, items] of [
    ["subscribe", 1],
    ["poll", 0],
  ] as const) {
    small.set("Running", false);
    const options = { url: small.url, mode, ...insecure };
    await using line = collect(await openOpcuaSource({ stateDir, options, tags: names.map(node) }));
    const details = line.source.details?.();
    expect(details).toMatchObject({ items, polled: 3 - items, failed: 0 });
    // A gap of a source with polled nodes does not count as filled by the server.
    expect(line.source.retainedBy).toBeUndefined();
    if (mode === "poll") expect(details).not.toHaveProperty("advice");
    else expect(details?.advice).toMatch(/^2 tags are polled.*BadTooManyMonitoredItems.*raise its limit/);
    await eventually(() => names.every((_, tag) => line.values(tag).length > 0));
    small.set("Running", true);
    await line.reading(({ tag, value }) => tag === 2 && value === true);
    // An unchanged value is not reported again.
    expect(line.values(2)).toEqual([false, true]);
    expect(line.descriptions).toHaveLength(3);
  }
});

test("a server with queues of one value does not count as keeping what the disk does not take", async () => {
  const subscription = { queue: 1 };
  await using line = collect(await open([node("Temp"), node("Count")], { ...insecure, subscription }));
  expect(line.source.retainedBy).toBeUndefined();
});

test.each(["BadServiceUnsupported", "BadTooManySubscriptions"] as const)(
  "a server that answers CreateSubscription with %s is polled, and its unchanged values are not reported again",
  async (status) => {
    await using small = await opcuaServer({
      folder: folder.file("server"),
      meddle: (changed) => refuseService(changed, "CreateSubscription", StatusCodes[status]),
    });
    small.set("Running", false);
    await using line = collect(
      await openOpcuaSource({
        stateDir,
        options: { url: small.url, ...insecure },
        tags: ["Temp", "Running"].map(node),
      }),
    );
    expect(line.source.details?.()).toMatchObject({ items: 0, polled: 2, failed: 0 });
    await line.reading(({ tag, value }) => tag === 1 && value === false);
    small.set("Running", true);
    await line.reading(({ tag, value }) => tag === 1 && value === true);
    expect(line.values(1)).toEqual([false, true]);
    expect(small.subscriptions).toBe(0);
  },
);

test("from 30 days before the agent's own certificate ends, the log warns of it at each connection", async () => {
  const dir = folder.file("ending");
  const connect = async (runtime = testRuntime()) => {
    const options = { url: server.url, ...insecure };
    await using source = await openOpcuaSource({ stateDir: dir, options, tags: [node("Temp")], runtime });
    return Date.parse(String(source.details?.()["certificateValidTo"])) * 1_000;
  };
  const end = await connect();
  const warnings = async (days: number) => {
    const now = () => epochMicros(end - days * 86_400e6);
    const runtime = testRuntime({ clock: { ...systemClock(), now } });
    for (const _ of [1, 2]) await connect(runtime);
    return runtime.lines.filter(({ message }) => message === "own certificate ends soon");
  };
  expect(await warnings(31)).toEqual([]);
  const ends = { level: "warn", fields: expect.objectContaining({ validTo: expect.stringMatching(/^20/) }) };
  expect(await warnings(29)).toMatchObject([ends, ends]);
});
