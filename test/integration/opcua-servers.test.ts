// The OPC UA source with servers that differ in certificate, capabilities and publishing speed.
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { trustCertificate } from "../../src/source/opcua/certificates/trust.ts";
import { eventually } from "../support/eventually.ts";
import { lineNamespace, type OpcuaServer, opcuaServer, user } from "../support/opcua-server.ts";
import { collect, openOpcuaSource, openTrusting } from "../support/opcua-source.ts";
import { type TcpProxy, tcpProxy } from "../support/tcp-proxy.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

// Each wait in a test allows for a busy machine, and there are several in a row.
vi.setConfig({ testTimeout: 120_000 });
const folder = temporaryFolder();
/** The state folder of the only agent in these tests. */
const stateDir = folder.file("state");
const insecure = { security: { mode: "none" } };
const encrypted = { security: { mode: "signAndEncrypt", policy: "Basic256Sha256" } };
const count = { node: `nsu=${lineNamespace};s=Count` };
let server: OpcuaServer;
let network: TcpProxy;

beforeAll(async () => {
  server = await opcuaServer({ folder: folder.file("server"), secure: true, transfer: false, fastestPublishing: 700 });
  network = await tcpProxy(server.port);
});
afterAll(async () => {
  await network[Symbol.asyncDispose]();
  await server[Symbol.asyncDispose]();
  folder[Symbol.dispose]();
});

const setup = (options: Readonly<Record<string, unknown>>) => ({
  stateDir,
  options: { url: `opc.tcp://127.0.0.1:${network.port}`, ...options },
  tags: [count],
});
let next = 0;
async function countUp(many: number): Promise<number[]> {
  const numbers = Array.from({ length: many }, () => ++next);
  for (const number of numbers) {
    server.set("Count", number);
    await eventually(() => server.counted.has(number), 30_000);
  }
  return numbers;
}

test("a server that publishes more slowly than requested queues every change, and status shows it", async () => {
  await using line = collect(await openOpcuaSource(setup(insecure)));
  expect(line.source.details?.().publishing).toBe("700 ms (asked for 100 ms)");
  await eventually(() => line.values(0).length > 0);
  const numbers = await countUp(8);
  await eventually(() => numbers.every((number) => line.values(0).includes(number)));
  expect(line.source.details?.()).toMatchObject({ overflows: 0 });
});

test("values lost in one direction after a quiet time arrive, from the first on", async () => {
  const options = { ...insecure, subscription: { keepAlive: "2100ms", publishing: "700ms" } };
  {
    await using before = collect(await openOpcuaSource(setup(options)));
    // The second confirmation is a keep-alive. It contains the sequence number of the next message, which will be lost.
    await eventually(() => before.values(0).length > 0 && before.confirmations > 1);
    network.muteDevice();
    // Two messages of one value each: the second one is sent after the first one.
    for (const round of [1, 2]) {
      const swallowed = network.swallowed;
      const [number] = await countUp(1);
      await eventually(() => network.swallowed > swallowed);
      expect(before.values(0), `message ${round}`).not.toContain(number);
    }
    network.cut();
    expect(await before.failure).toMatchObject({ code: "SOURCE_UNREACHABLE" });
  }
  network.restore();
  const all = [next - 1, next];
  await using after = collect(await openOpcuaSource(setup(options)));
  await eventually(() => all.every((number) => after.values(0).includes(number)));
  expect(after.source.details?.()).toMatchObject({ subscription: "kept" });
});

test("a restart loses nothing at a server without TransferSubscriptions; a session that ended there costs a new subscription", async () => {
  const subscriptions = server.subscriptions;
  for (const origin of ["new", "kept", "kept", "new"]) {
    if (origin === "new") server.endSessions();
    const [missed = 0] = origin === "kept" ? await countUp(1) : [];
    await using line = collect(await openTrusting(setup(encrypted)));
    expect(line.source.details?.()).toMatchObject({ subscription: origin });
    const [number = 0] = await countUp(1);
    await line.reading(({ value }) => value === number);
    if (missed > 0) expect(line.values(0)).toContain(missed);
    expect(server.subscriptions).toBeLessThanOrEqual(subscriptions + 1);
  }
});

test("a channel that is only signed carries values; the password in it is encrypted for itself", async () => {
  const options = { security: { mode: "sign" }, username: user.name, password: user.password };
  await using line = collect(await openTrusting(setup(options)));
  expect(line.source.details?.()).toMatchObject({ security: "sign, Aes256_Sha256_RsaPss" });
  expect(line.source.details?.().warning).not.toContain("password");
  await line.reading(({ quality }) => quality === "good");
});

test("a server that returns with another certificate is not used until that one is trusted", async () => {
  await using other = await opcuaServer({ folder: folder.file("other"), secure: true });
  await using _line = collect(await openTrusting(setup(encrypted)));
  network.cut();
  network.target = other.port;
  network.restore();
  const refusal = await openOpcuaSource(setup(encrypted)).catch((error: unknown) => error);
  expect(refusal).toMatchObject({ code: "SOURCE_REFUSED", message: expect.stringContaining("is not trusted") });
  const thumbprint = /trust accept ([0-9a-f]{40})/.exec(String(refusal))?.[1] ?? "";
  expect(await trustCertificate(stateDir, thumbprint)).toBe(true);
  await using again = collect(await openOpcuaSource(setup(encrypted)));
  await again.reading(({ quality }) => quality === "good");
  network.target = server.port;
});

test("a server with an expired certificate is refused with its dates and this clock, even when it is trusted", async () => {
  const validTo = new Date(Date.now() - 86_400_000);
  await using old = await opcuaServer({ folder: folder.file("old"), secure: true, validTo });
  const expired = { ...setup(encrypted), options: { url: old.url, ...encrypted } };
  const refusal = await openTrusting(expired).catch((error: unknown) => error);
  expect(refusal).toMatchObject({ code: "SOURCE_REFUSED" });
  expect(String(refusal)).toMatch(/BadCertificateTimeInvalid.*this clock says/);
});
