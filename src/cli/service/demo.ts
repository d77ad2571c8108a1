// `tagferry demo`: devices, agent and service on this machine, with an outage and a final comparison.
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { type Agent, openAgent } from "../../agent/agent.ts";
import { openLog } from "../../agent/log/log.ts";
import { metricsRegistry } from "../../agent/process/metrics.ts";
import { systemRuntime } from "../../agent/runtime.ts";
import { loadConfig } from "../../config/load.ts";
import { isAgentError } from "../../core/errors.ts";
import { epochMicros } from "../../core/point.ts";
import type { Runtime } from "../../core/runtime.ts";
import { Secret } from "../../core/secret.ts";
import { lastLine } from "../../demo/comparison.ts";
import { type DemoDevices, openDevices } from "../../demo/devices.ts";
import { readBackAndCompare } from "../../demo/read-back.ts";
import { isAbort } from "../../lib/abort.ts";
import type { LocalServiceOptions } from "../../service/config/options.ts";
import { openService, type Service } from "../../service/service.ts";
import { openWeb, type Web } from "../../web/server.ts";
import { pageDetails } from "../run/serve.ts";
import type { Console } from "../terminal/console.ts";
import { type ExitStatus, exitStatus } from "../terminal/exit-status.ts";
import { typedAs, version } from "../terminal/version.ts";
import { watch } from "./demo-watch.ts";

interface DemoOptions {
  /** Milliseconds. Undefined: until a signal stops it. */
  readonly duration?: number;
  /** Folder for configuration, buffer and service data. Undefined: a temporary one that is removed at the end. */
  readonly keep?: string;
}

const integration = "c8ktonqsahsmemfs7lv0";
const password = "demo";
const namespace = "platform";
const drainWithinMs = 120_000;

export async function demo({ duration, keep }: DemoOptions, given: Console): Promise<ExitStatus> {
  // The demo ends when its output is closed (`| head`).
  const io = { ...given, signal: AbortSignal.any([given.signal, ...(given.unread ? [given.unread] : [])]) };
  await using parts = new AsyncDisposableStack();
  const folder = await demoFolder(keep, parts);
  const log = await openLog({ level: "warn", descriptor: 2, pretty: io.interactive, fields: { agent: "demo" } });
  parts.defer(() => log.flush());
  const metrics = metricsRegistry();
  const runtime = systemRuntime(log, metrics);
  const from = runtime.clock.now();

  io.print("starting an MQTT broker, a Modbus TCP device, an OPC UA server, the local service and the agent …");
  const service = parts.use(
    await withAnyPort(8420, (port) => openService(serviceOptions(folder, port), runtime, io.signal)),
  );
  const devices = parts.use(
    await openDevices({ tags: { mqtt: 8, modbus: 14, opcua: 8 }, everyMs: 500 }, runtime, io.signal),
  );
  const file = join(folder, "tagferry.yaml");
  await writeFile(file, configuration(folder, service, devices));
  const config = await loadConfig(file, io.environment);
  const agentScope = parts.use(new AsyncDisposableStack());
  const agent = agentScope.use(await openAgent(config, { version: version() }, runtime, io.signal));
  const page = {
    ...pageDetails(file, config),
    snapshot: () => agent.status(),
    gaps: (sinceMs: number, most: number) => agent.gaps(sinceMs, most),
    metrics: () => metrics.text(),
    health: () => ({ ok: true }),
    ready: () => ({ ok: true }),
  };
  const web = parts.use(
    await withAnyPort(8421, (port) => openWeb({ ...page, listen: { host: "127.0.0.1", port } }, runtime, io.signal)),
  );
  introduce(io, service, devices, web, file);

  try {
    const outage = await watch({ service, devices, agent, io, runtime, duration });
    await devices.stop(io.signal);
    if (agent.status().buffer.unsettledPoints > 0) io.print("waiting until what is on disk is delivered …");
    await drained(agent, runtime, io.signal);
    const { requests, maxRate } = seen(service);
    await agentScope.disposeAsync();
    io.print("reading everything back from the service …");
    const comparison = await readBackAndCompare(
      { url: service.url, integration, password, apiVersion: "1.1beta1", namespace },
      devices.handedOut(),
      { from: epochMicros(from - 3_600e6), before: epochMicros(runtime.clock.now() + 3_600e6) },
      runtime,
      io.signal,
    );
    for (const example of comparison.examples) io.complain(example);
    io.print(lastLine(comparison, { requests, maxRate, outageMs: outage }));
    return comparison.exact ? exitStatus.done : exitStatus.failed;
  } catch (error) {
    if (!isAbort(error, io.signal)) throw error;
    io.print("stopped");
    return exitStatus.done;
  }
}

async function demoFolder(keep: string | undefined, parts: AsyncDisposableStack): Promise<string> {
  const folder = keep === undefined ? await mkdtemp(join(tmpdir(), "tagferry-demo-")) : resolve(keep);
  await mkdir(folder, { recursive: true });
  if (keep === undefined) parts.defer(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

/** Opens `port`, or any free port if it is in use. */
async function withAnyPort<T>(port: number, open: (port: number) => Promise<T>): Promise<T> {
  try {
    return await open(port);
  } catch (error) {
    if (!isAgentError(error, "PORT_IN_USE")) throw error;
    return open(0);
  }
}

function serviceOptions(folder: string, port: number): LocalServiceOptions {
  return {
    listen: { host: "127.0.0.1", port },
    data: join(folder, "service"),
    integrations: [{ id: integration, password: new Secret(password), grants: ["admin", "platform"] }],
    namespace,
    throttle: "queue",
  };
}

/** The configuration that a user would write for the devices of the demo. */
function configuration(folder: string, service: Service, devices: DemoDevices): string {
  return `version: 1
agent:
  name: demo
  # The agent's own signals come from no device.
  ownSignals: off
  dataDir: ${JSON.stringify(join(folder, "agent"))}
service:
  url: ${service.url}
  integration: ${integration}
  auth: { basic: { password: "\${DEMO_SERVICE_PASSWORD:-${password}}" } }
${devices.configuration}`;
}

function introduce(io: Console, service: Service, devices: DemoDevices, web: Web, file: string): void {
  const { mqtt } = devices.logins;
  const typed = typedAs(io.environment.variables);
  io.print(`
  MQTT broker      ${devices.urls.mqtt}   (user ${mqtt.username}, password ${mqtt.password})
  Modbus device    ${devices.urls.modbus}
  OPC UA server    ${devices.urls.opcua}
  configuration    ${file}
  status page      ${web.url}
  timeline page    ${service.pageUrl}   (sign in as ${integration}, password ${password})

  From another terminal: ${typed} status --url ${web.url}
                         ${typed} browse ${devices.urls.opcua}
`);
}

/** Resolves when no points wait for delivery, or after the time limit. */
async function drained(agent: Agent, runtime: Runtime, signal: AbortSignal): Promise<void> {
  const end = runtime.clock.monotonic() + drainWithinMs;
  while (agent.status().buffer.unsettledPoints > 0 && runtime.clock.monotonic() < end)
    await runtime.clock.sleep(100, signal);
}

/** The service's counters of the agent's requests, taken before reading back. */
function seen(service: Service): { readonly requests: number; readonly maxRate: number } {
  const traffic = [...service.counters().values()];
  return {
    requests: traffic.reduce((sum, { requests }) => sum + requests, 0),
    maxRate: Math.max(0, ...traffic.map(({ maxStartsPerSecond }) => maxStartsPerSecond)),
  };
}
