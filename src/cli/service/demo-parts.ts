// What the demos of one agent and of a cluster share: options, the local service, and the final comparison.
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { openLog } from "../../agent/log/log.ts";
import { metricsRegistry } from "../../agent/process/metrics.ts";
import { isAgentError } from "../../core/errors.ts";
import { epochMicros } from "../../core/point.ts";
import { Secret } from "../../core/secret.ts";
import { lastLine } from "../../demo/comparison.ts";
import { openDevices } from "../../demo/devices.ts";
import { readBackAndCompare } from "../../demo/read-back.ts";
import { isAbort } from "../../lib/flow/abort.ts";
import { systemRuntime } from "../../lib/time/clock.ts";
import type { LocalServiceOptions } from "../../service/config/options.ts";
import { openService, type Service } from "../../service/service.ts";
import type { Console } from "../terminal/console.ts";
import { type ExitStatus, exitStatus } from "../terminal/exit-status.ts";

export interface DemoOptions {
  /** Milliseconds. Undefined: until a signal stops it. */
  readonly duration?: number;
  /** Folder for configuration, buffer and service data. Undefined: a temporary one that is removed at the end. */
  readonly keep?: string;
  /** Run the demo of a cluster. */
  readonly cluster?: boolean;
  /** The program `nats-server`. Undefined: the one in PATH. */
  readonly natsServer?: string;
}

const integration = "c8ktonqsahsmemfs7lv0";
const password = "demo";
/** Hint for signing in to the timeline page. */
export const signIn = `(sign in as ${integration}, password ${password})`;
const namespace = "platform";

export type Demo = Awaited<ReturnType<typeof openDemo>>;

/**
 * The console, which also ends when its output is closed (`| head`), the folder, the runtime, the local service and the
 * devices. `what`: all that is started, for the operator.
 */
export async function openDemo(given: Console, keep: string | undefined, what: string, parts: AsyncDisposableStack) {
  const io = { ...given, signal: AbortSignal.any([given.signal, ...(given.unread ? [given.unread] : [])]) };
  const folder = await demoFolder(keep, parts);
  const log = await openLog({ level: "warn", descriptor: 2, pretty: io.interactive, fields: { agent: "demo" } });
  parts.defer(() => log.flush());
  const metrics = metricsRegistry();
  const runtime = systemRuntime(log, metrics);
  const from = runtime.clock.now();
  io.print(`starting ${what} …`);
  const service = parts.use(
    await withAnyPort(8420, (port) => openService(demoServiceOptions(folder, port), runtime, io.signal)),
  );
  const devices = parts.use(
    await openDevices({ tags: { mqtt: 8, modbus: 14, opcua: 8 }, everyMs: 500 }, runtime, io.signal),
  );
  return { io, folder, log, metrics, runtime, from, service, devices };
}

async function demoFolder(keep: string | undefined, parts: AsyncDisposableStack): Promise<string> {
  const folder = keep === undefined ? await mkdtemp(join(tmpdir(), "tagferry-demo-")) : resolve(keep);
  await mkdir(folder, { recursive: true });
  if (keep === undefined) parts.defer(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

/** Opens `port`, or any free port if it is in use. */
export async function withAnyPort<T>(port: number, open: (port: number) => Promise<T>): Promise<T> {
  try {
    return await open(port);
  } catch (error) {
    if (!isAgentError(error, "PORT_IN_USE")) throw error;
    return open(0);
  }
}

function demoServiceOptions(folder: string, port: number): LocalServiceOptions {
  return {
    listen: { host: "127.0.0.1", port },
    data: join(folder, "service"),
    integrations: [{ id: integration, password: new Secret(password), grants: ["admin", "platform"] }],
    namespace,
    throttle: "queue",
  };
}

/** The section of a configuration that delivers to the service. */
export function serviceSection({ url }: Service): string {
  return `service:
  url: ${url}
  integration: ${integration}
  auth: { basic: { password: "\${DEMO_SERVICE_PASSWORD:-${password}}" } }`;
}

export function requestsAt(service: Service): number {
  return [...service.counters().values()].reduce((sum, { requests }) => sum + requests, 0);
}

/**
 * Compares what the devices delivered until `run` has ended with what the service has stored since the start. `run`
 * resolves with the length of the outage in milliseconds, once nothing waits for delivery.
 */
export async function compareAfter(
  run: () => Promise<number>,
  { io, service, devices, from, runtime }: Demo,
): Promise<ExitStatus> {
  try {
    const outageMs = await run();
    // Counted before reading back, which takes requests of its own.
    const requests = requestsAt(service);
    const maxRate = Math.max(0, ...[...service.counters().values()].map((traffic) => traffic.maxStartsPerSecond));
    io.print("reading everything back from the service …");
    const comparison = await readBackAndCompare(
      { url: service.url, integration, password, apiVersion: "1.1beta1", namespace },
      devices.delivered(),
      { from: epochMicros(from - 3_600e6), before: epochMicros(runtime.clock.now() + 3_600e6) },
      runtime,
      io.signal,
    );
    for (const example of comparison.examples) io.complain(example);
    io.print(lastLine(comparison, { requests, maxRate, outageMs }));
    return comparison.exact ? exitStatus.done : exitStatus.failed;
  } catch (error) {
    if (!isAbort(error, io.signal)) throw error;
    io.print("stopped");
    return exitStatus.done;
  }
}
