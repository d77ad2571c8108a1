// The OPC UA source with Eclipse Milo, a strict stack: types, trust in both directions, user, restarts.
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { eventually } from "../support/eventually.ts";
import { type Milo, milo } from "../support/milo.ts";
import { collect, openOpcuaSource, openTrusting } from "../support/opcua-source.ts";
import { testRuntime } from "../support/runtime.ts";
import { type TcpProxy, tcpProxy } from "../support/tcp-proxy.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const folder = temporaryFolder();
const none = { security: { mode: "none" } };
const names = ["Temp", "Count", "Big", "Ratio", "State", "Running", "Mode"];
const node = (name: string) => ({ node: `nsu=urn:tagferry:test:line;s=${name}` });
let server: Milo;
let network: TcpProxy;
let states = 0;

beforeAll(async () => {
  server = await milo({ folder: folder.file("server") });
  network = await tcpProxy(server.port);
}, 180_000);
afterAll(async () => {
  await network[Symbol.asyncDispose]();
  await server[Symbol.asyncDispose]();
  folder[Symbol.dispose]();
});

const freshState = () => folder.file(`state${states++}`);
const certificateOf = (stateDir: string) => join(stateDir, "pki/own/certs/client_certificate.pem");
const setup = (
  stateDir: string,
  options: Readonly<Record<string, unknown>>,
  tags: readonly Readonly<Record<string, unknown>>[] = names.map(node),
) => ({ stateDir, options: { url: `opc.tcp://127.0.0.1:${network.port}`, ...options }, tags });

test("once each side trusts the other, values of every type arrive, encrypted and with a user", async () => {
  const stateDir = freshState();
  const login = {
    security: { mode: "signAndEncrypt", policy: "Basic256Sha256" },
    username: "reader",
    password: "rope",
  };
  await expect(openOpcuaSource(setup(stateDir, login))).rejects.toMatchObject({
    code: "SOURCE_REFUSED",
    message: expect.stringContaining("tagferry trust accept"),
  });
  await expect(openTrusting(setup(stateDir, login))).rejects.toMatchObject({
    code: "SOURCE_REFUSED",
    message: expect.stringContaining(`it does not trust this agent; the certificate to trust there is`),
  });
  server.trust(certificateOf(stateDir));
  await using line = collect(await eventually(() => openOpcuaSource(setup(stateDir, login))));
  expect(line.source.details?.()).toMatchObject({ security: "signAndEncrypt, Basic256Sha256", failed: 0 });
  await eventually(() => names.every((_, tag) => line.values(tag).length > 0));
  const seconds = Math.floor(Date.now() / 1_000) - 5;
  const values = [21.5, 4_000_000_000, -(2n ** 53n) - 1n, 0.1, 2, true, "hand"] as const;
  for (const [i, name] of names.entries()) server.set(name, values[i] ?? 0, seconds + 0.123_456);

  await eventually(() => names.every((_, tag) => line.values(tag).length > 1));

  const last = names.map((_, tag) => line.readings.findLast((reading) => reading.tag === tag));
  expect(last.map((reading) => reading?.value)).toEqual(values);
  for (const reading of last)
    expect(reading).toMatchObject({ time: seconds * 1e6 + 123_456, clock: "device", quality: "good" });
  expect(line.descriptions[0]).toMatchObject({
    signal: { name: "Temp", description: "in the middle", engUnit: "°C" },
    range: { min: 0, max: 200 },
  });
  const wrong = { ...login, password: "guess" };
  await expect(openOpcuaSource(setup(stateDir, wrong))).rejects.toMatchObject({
    code: "SOURCE_REFUSED",
    message: expect.stringContaining("refuses this user or password"),
  });
}, 120_000);

test("a channel that is signed but not encrypted carries values, and no password in clear text", async () => {
  const stateDir = freshState();
  const signed = { security: { mode: "sign" } };
  await openTrusting(setup(stateDir, signed)).catch(() => {});
  server.trust(certificateOf(stateDir));
  const login = { ...signed, username: "reader", password: "rope" };
  await using line = collect(await eventually(() => openOpcuaSource(setup(stateDir, login))));
  expect(line.source.details?.()).toMatchObject({ security: "sign, Aes128_Sha256_RsaOaep", failed: 0 });
  await line.reading(({ tag, quality }) => tag === 0 && quality === "good");
});

test("paths, patterns and elements are found, and a bad node is reported by name", async () => {
  const tags = [{ path: "Line/Temp" }, { browse: "Line/*" }, node("Nope"), { ...node("List"), index: 1 }];
  await using line = collect(await openOpcuaSource(setup(freshState(), none, tags)));
  await eventually(() => line.values(0).length > 0 && line.values(1).length >= names.length);
  const found = new Set(line.readings.filter(({ tag }) => tag === 1).map(({ captures }) => captures.name));
  expect(found).toEqual(new Set([...names, "List", "Window", "Drive"]));
  expect(line.readings.find(({ tag }) => tag === 2)?.reason).toMatch(/^BadNodeIdUnknown/);
  await line.reading(({ tag, value }) => tag === 3 && value === 2.5);
});

test("fields of a vendor structure and of a standard structure are read", async () => {
  const tags = [
    ...["Running", "Axis.Position", "Axes[1].Position", "Grid[1,0]"].map((field) => ({ ...node("Drive"), field })),
    { ...node("Window"), field: "High" },
  ];
  await using line = collect(await openOpcuaSource(setup(freshState(), none, tags)));
  for (const [i, value] of [true, 1.5, 3.5, 3, 40.25].entries())
    expect(await line.reading(({ tag }) => tag === i)).toMatchObject({ value, quality: "good" });
});

test("a user logs in with a certificate", async () => {
  const stateDir = freshState();
  const security = { mode: "signAndEncrypt", policy: "Basic256Sha256" };
  await openTrusting(setup(stateDir, { security })).catch(() => {});
  server.trust(certificateOf(stateDir));
  const userCertificate = {
    certFile: certificateOf(stateDir),
    keyFile: join(stateDir, "pki/own/private/private_key.pem"),
  };
  await using line = collect(await eventually(() => openOpcuaSource(setup(stateDir, { security, userCertificate }))));
  await line.reading(({ tag, quality }) => tag === 0 && quality === "good");
});

test("a cut of the network loses no value", async () => {
  const stateDir = freshState();
  const options = { ...none, subscription: { keepAlive: "5m" } };
  await using before = collect(await openOpcuaSource(setup(stateDir, options, [node("Count")])));
  await eventually(() => before.values(0).length > 0);
  network.cut();
  const missed = [101, 102, 103, 104, 105];
  for (const value of missed) {
    server.set("Count", value);
    await eventually(() => server.held.has(`Count ${value}`), 30_000);
  }
  expect(await before.failure).toMatchObject({ code: "SOURCE_UNREACHABLE" });
  await before[Symbol.asyncDispose]();
  network.restore();
  const runtime = testRuntime();
  await using after = collect(await openOpcuaSource({ ...setup(stateDir, options, [node("Count")]), runtime }));
  let failure = "none";
  void after.failure.then((error) => {
    failure = String(error);
  });
  // The source requests a republish of what was sent during the outage. The next keep-alive is five minutes away.
  await eventually(() => {
    if (missed.every((value) => after.values(0).includes(value))) return true;
    const lost = runtime.metric("source_opcua_lost_notifications_total", { source: "line" });
    throw new Error(
      `arrived: ${after.values(0).join()}; confirmations: ${after.confirmations}; lost: ${lost}; failure: ${failure}`,
    );
  }, 120_000);
  expect(after.source.details?.()).toMatchObject({ subscription: "kept" });
}, 240_000);

test("after a restart of the agent the server transfers unacknowledged values", async () => {
  const stateDir = freshState();
  // Milo publishes unacknowledged values with the next keep-alive, but announces them at once.
  const secure = { security: { mode: "signAndEncrypt" }, subscription: { keepAlive: "5m" } };
  await openTrusting(setup(stateDir, secure, [node("Count")])).catch(() => {});
  server.trust(certificateOf(stateDir));
  {
    const source = await eventually(() => openOpcuaSource(setup(stateDir, secure, [node("Count")])));
    await using before = collect(source, { acknowledge: false });
    await eventually(() => before.values(0).length > 0);
    server.set("Count", 4_711);
    await eventually(() => before.values(0).includes(4_711));
  }
  server.set("Count", 4_712);
  await using after = collect(await openOpcuaSource(setup(stateDir, secure, [node("Count")])));
  await eventually(() => after.values(0).includes(4_711) && after.values(0).includes(4_712));
  expect(after.source.details?.()).toMatchObject({ subscription: "kept" });
});

test("a server killed and restarted with other namespace indexes gives the same variables", async () => {
  const stateDir = freshState();
  const own = await milo({ folder: folder.file("server") });
  const tags = [node("Count"), { node: "ns=2;s=Count" }];
  const open = () => openOpcuaSource({ stateDir, options: { url: own.url, ...none }, tags });
  await using before = collect(await open());
  await eventually(() => before.values(0).length > 0 && before.values(1).length > 0);
  await own.kill();
  expect(await before.failure).toMatchObject({ code: "SOURCE_UNREACHABLE" });
  await before[Symbol.asyncDispose]();
  await using again = await milo({ folder: folder.file("server"), port: own.port, before: ["urn:other"] });
  again.set("Count", 7);
  await using after = collect(await open());
  await eventually(() => after.values(0).includes(7));
  expect(after.source.details?.()).toMatchObject({ subscription: "new" });
  expect((await after.reading(({ tag }) => tag === 1)).reason).toMatch(/^namespace changed: ns=2 was/);
}, 120_000);
