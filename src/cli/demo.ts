// `tagferry demo`: the whole job on this machine, with an outage in the middle and a comparison at the end.
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { type Agent, openAgent } from "../agent/agent.ts";
import { openLog } from "../agent/log.ts";
import { metricsRegistry } from "../agent/metrics.ts";
import { systemRuntime } from "../agent/runtime.ts";
import { loadConfig } from "../config/load.ts";
import { isAgentError } from "../core/errors.ts";
import { epochMicros } from "../core/point.ts";
import type { Runtime } from "../core/runtime.ts";
import { Secret } from "../core/secret.ts";
import { lastLine } from "../demo/comparison.ts";
import { type DemoDevices, openDevices } from "../demo/devices.ts";
import { readBackAndCompare } from "../demo/read-back.ts";
import { isAbort } from "../lib/abort.ts";
import type { ServiceOptions } from "../service/options.ts";
import { openService, type Service } from "../service/service.ts";
import type { DetailOptions } from "../web/details.ts";
import { openWeb, type Web } from "../web/server.ts";
import type { Console } from "./console.ts";
import { type ExitStatus, exitStatus } from "./exit-status.ts";
import { pageDetails } from "./page-details.ts";
import { version } from "./version.ts";

export interface DemoOptions {
  /** Milliseconds; undefined: until a signal ends it. */
  readonly duration?: number;
  /** Folder to keep configuration, buffer and service data in; undefined: a temporary one, removed at the end. */
  readonly keep?: string;
}

const integration = "c8ktonqsahsmemfs7lv0";
const password = "demo";
const namespace = "platform";
const outageMs = 5_000;
/** The outage begins after this share of the duration, and after 20 s where there is none. */
const outageAt = 0.35;
const outageAfterMs = 20_000;
/** How long the backlog may take to drain at the end. */
const drainWithinMs = 120_000;

export async function demo({ duration, keep }: DemoOptions, given: Console): Promise<ExitStatus> {
  // A demo that nobody watches any longer (`| head`) is over.
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
  const web = parts.use(
    await withAnyPort(8421, (port) =>
      openStatusPage(agent, port, () => metrics.text(), pageDetails(file, config), runtime, io.signal),
    ),
  );
  introduce(io, { service, devices, web, file });

  try {
    const outage = await watch({ service, devices, agent, io, runtime, duration });
    await devices.stop(io.signal);
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
  if (keep !== undefined) {
    const folder = resolve(keep);
    await mkdir(folder, { recursive: true });
    return folder;
  }
  const folder = await mkdtemp(join(tmpdir(), "tagferry-demo-"));
  parts.defer(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

/** Opens something on the port people know it by, or on any free one when that is taken. */
async function withAnyPort<T>(port: number, open: (port: number) => Promise<T>): Promise<T> {
  try {
    return await open(port);
  } catch (error) {
    if (!isAgentError(error, "PORT_IN_USE")) throw error;
    return open(0);
  }
}

function serviceOptions(folder: string, port: number): ServiceOptions {
  return {
    listen: { host: "127.0.0.1", port },
    data: join(folder, "service"),
    integrations: [{ id: integration, password: new Secret(password), grants: ["admin", "platform"] }],
    namespace,
    throttle: "queue",
  };
}

function openStatusPage(
  agent: Agent,
  port: number,
  metrics: () => Promise<string>,
  details: DetailOptions,
  runtime: Runtime,
  signal: AbortSignal,
): Promise<Web> {
  const ok = () => ({ ok: true });
  return openWeb(
    {
      ...details,
      listen: { host: "127.0.0.1", port },
      snapshot: () => agent.status(),
      gaps: (sinceMs, most) => agent.gaps(sinceMs, most),
      metrics,
      health: ok,
      ready: ok,
    },
    runtime,
    signal,
  );
}

/** What a user would write, for the devices of the demo. */
function configuration(folder: string, service: Service, devices: DemoDevices): string {
  return `version: 1
agent:
  name: demo
  # What the agent tells of itself no device has handed out.
  ownSignals: off
  dataDir: ${JSON.stringify(join(folder, "agent"))}
service:
  url: ${service.url}
  integration: ${integration}
  auth: { basic: { password: "\${DEMO_SERVICE_PASSWORD:-${password}}" } }
${devices.configuration}`;
}

interface Introduced {
  readonly service: Service;
  readonly devices: DemoDevices;
  readonly web: Web;
  readonly file: string;
}

function introduce(io: Console, { service, devices, web, file }: Introduced): void {
  io.print(`
  MQTT broker      ${devices.urls.mqtt}
  Modbus device    ${devices.urls.modbus}
  OPC UA server    ${devices.urls.opcua}
  configuration    ${file}
  status page      ${web.url}
  timeline page    ${service.pageUrl}   (sign in as ${integration}, password ${password})
`);
}

interface Watched {
  readonly service: Service;
  readonly devices: DemoDevices;
  readonly agent: Agent;
  readonly io: Console;
  readonly runtime: Runtime;
  readonly duration: number | undefined;
}

/** A line a second, and the outage on the way. Resolves when the duration is over, with how long the service was away, in milliseconds. */
async function watch(watched: Watched): Promise<number> {
  const { devices, agent, io, runtime, duration } = watched;
  const started = runtime.clock.monotonic();
  const outage = new Outage(watched);
  const over = outage.run();
  // A signal ends both this loop and the outage; the loop tells of it.
  over.catch(() => {});
  for (let at = 1_000; ; at += 1_000) {
    const target = Math.min(at, duration ?? Number.POSITIVE_INFINITY);
    await runtime.clock.sleep(Math.max(0, started + target - runtime.clock.monotonic()), io.signal);
    io.print(summary(target, devices, agent, outage.now));
    if (target === duration) return over;
  }
}

/** Switches the service off and on again: connections are cut and new ones refused, as when its machine restarts. */
class Outage {
  readonly #watched: Watched;
  #now = false;

  constructor(watched: Watched) {
    this.#watched = watched;
  }

  get now(): boolean {
    return this.#now;
  }

  /** Resolves with its length in milliseconds, to the second. */
  async run(): Promise<number> {
    const { service, io, runtime, duration } = this.#watched;
    await runtime.clock.sleep(duration === undefined ? outageAfterMs : duration * outageAt, io.signal);
    io.print("      -- the service is switched off: it refuses every connection");
    await service.pause();
    this.#now = true;
    const began = runtime.clock.monotonic();
    await runtime.clock.sleep(outageMs, io.signal);
    const lasted = runtime.clock.monotonic() - began;
    await service.resume();
    this.#now = false;
    io.print("      -- the service is back");
    return Math.round(lasted / 1_000) * 1_000;
  }
}

function summary(elapsedMs: number, devices: DemoDevices, agent: Agent, away: boolean): string {
  const { buffer, upload, sources } = agent.status();
  const online = sources.filter(({ state }) => state === "online").length;
  const lag = upload.lagMs === undefined ? "-" : `${(upload.lagMs / 1_000).toFixed(1)} s`;
  return [
    `${String(Math.round(elapsedMs / 1_000)).padStart(3)} s`,
    `sources ${online}/${sources.length}`,
    `handed out ${String(devices.count).padStart(6)}`,
    `delivered ${String(upload.points).padStart(6)}`,
    `on disk ${String(buffer.unsettledPoints).padStart(5)}`,
    `requests ${String(upload.requests).padStart(4)}`,
    `lag ${lag}`,
    away ? "service away" : upload.state,
  ].join("  ");
}

/** Resolves when nothing waits for delivery any more. */
async function drained(agent: Agent, runtime: Runtime, signal: AbortSignal): Promise<void> {
  const end = runtime.clock.monotonic() + drainWithinMs;
  while (agent.status().buffer.unsettledPoints > 0 && runtime.clock.monotonic() < end)
    await runtime.clock.sleep(100, signal);
}

/** What the service counted of the agent's requests, before anything is read back. */
function seen(service: Service): { readonly requests: number; readonly maxRate: number } {
  const traffic = [...service.counters().values()];
  return {
    requests: traffic.reduce((sum, { requests }) => sum + requests, 0),
    maxRate: Math.max(0, ...traffic.map(({ maxStartsPerSecond }) => maxStartsPerSecond)),
  };
}
