// How soon values arrive after a network outage: an agent with servers on three stacks, each behind its own network.
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { startAgent } from "../support/agent-process.ts";
import { asyncua } from "../support/asyncua.ts";
import { eventually } from "../support/eventually.ts";
import { gopcua } from "../support/gopcua.ts";
import { putKey } from "../support/opcua-key.ts";
import { open62541 } from "../support/open62541.ts";
import { integration, password, testService } from "../support/service.ts";
import { type TcpProxy, tcpProxy } from "../support/tcp-proxy.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const folder = temporaryFolder();
afterAll(() => folder[Symbol.dispose]());

/** The documented limit, for a machine without other load. */
const promisedMs = 5_000;
/** The limit on a loaded machine. A past defect took 85 s. */
const patienceMs = 30_000;

interface Line {
  readonly server: { readonly port: number; set(name: "Count", value: number): Promise<void> | void };
  readonly network: TcpProxy;
}

const outages: Readonly<Record<string, (network: TcpProxy) => void>> = {
  "cut off": (network) => network.cut(),
  silent: (network) => network.muteDevice(),
  "silent, then cut off": (network) => {
    network.muteDevice();
    network.cut();
  },
};

test("values arrive soon after the network recovers, whatever the server did during the outage", async () => {
  await using parts = new AsyncDisposableStack();
  const service = parts.use(await testService());
  const servers = {
    asyncua: parts.use(await asyncua({ folder: folder.file("asyncua") })),
    open62541: parts.use(await open62541()),
    gopcua: parts.use(await gopcua()),
  };
  const lines = new Map<string, Line>();
  for (const [name, server] of Object.entries(servers))
    lines.set(name, { server, network: parts.use(await tcpProxy(server.port)) });
  const dataDir = folder.file("data");
  await putKey("agent", join(dataDir, "pki"));
  const sources = [...lines].map(
    ([name, { network }]) => `
  ${name}:
    type: opcua
    url: opc.tcp://127.0.0.1:${network.port}
    security: { mode: none }
    timeout: 3s
    every: 100ms
    subscription: { keepAlive: 1s }
    tags: [{ input: ${name}, path: Line/Count }]`,
  );
  const configuration = `version: 1
agent: { name: gw1, dataDir: ${JSON.stringify(dataDir)}, ownSignals: off }
service: { url: "${service.url}", integration: ${integration}, auth: { basic: { password: "${password}" } } }
http: { listen: "127.0.0.1:0" }
sources:${sources.join("")}
`;
  const agent = parts.use(await startAgent({ folder: folder.path, configuration }));
  let count = 100;
  const states = async () => (await agent.status()).sources.map(({ state }) => state);
  /** Milliseconds until each tag has this value. */
  const arrival = async (value: number) => {
    const begin = performance.now();
    const took: Record<string, number> = {};
    await eventually(async () => {
      for (const { input, value: last } of (await agent.status()).tags)
        if (last === value) took[input] ??= Math.round(performance.now() - begin);
      return Object.keys(took).length === lines.size;
    }, 120_000).catch(async (error: unknown) => {
      const { sources } = await agent.status();
      const seen = sources.map(({ name, state, error: why, details }) => ({ name, state, why, ...details }));
      throw new Error(JSON.stringify({ took, seen, log: agent.log.slice(-30) }, undefined, 1), { cause: error });
    });
    return took;
  };
  await eventually(async () => (await states()).every((state) => state === "online"), 60_000);
  for (const { server } of lines.values()) await server.set("Count", count);
  await arrival(count);
  const figures: Record<string, Record<string, number>> = {};
  for (const [name, fail] of Object.entries(outages)) {
    for (const { network } of lines.values()) fail(network);
    await eventually(async () => (await states()).every((state) => state !== "online"), 60_000);
    for (const { network } of lines.values()) network.restore();
    count++;
    for (const { server } of lines.values()) await server.set("Count", count);
    figures[name] = await arrival(count);
  }
  process.stdout.write(`milliseconds until values came again, promised ${promisedMs}: ${JSON.stringify(figures)}\n`);
  for (const took of Object.values(figures))
    for (const [name, ms] of Object.entries(took)) expect(ms, name).toBeLessThan(patienceMs);
  expect(agent.log.filter(({ msg }) => msg === "source failed unexpectedly")).toEqual([]);
}, 300_000);
