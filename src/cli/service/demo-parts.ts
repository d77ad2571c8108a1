// What the demos of one agent and of a cluster share: options, the local service, and the final comparison.
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { openLog } from "../../agent/log/log.ts";
import { metricsRegistry } from "../../agent/process/metrics.ts";
import { systemRuntime } from "../../agent/runtime.ts";
import { isAgentError } from "../../core/errors.ts";
import { type EpochMicros, epochMicros } from "../../core/point.ts";
import type { Runtime } from "../../core/runtime.ts";
import { Secret } from "../../core/secret.ts";
import type { Comparison } from "../../demo/comparison.ts";
import type { DemoDevices } from "../../demo/devices.ts";
import { readBackAndCompare } from "../../demo/read-back.ts";
import type { LocalServiceOptions } from "../../service/config/options.ts";
import type { Service } from "../../service/service.ts";
import type { Console } from "../terminal/console.ts";

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

export const integration = "c8ktonqsahsmemfs7lv0";
export const password = "demo";
const namespace = "platform";

/** The console, which also ends when its output is closed (`| head`), the folder, and the runtime. */
export async function openDemo(given: Console, keep: string | undefined, parts: AsyncDisposableStack) {
  const io = { ...given, signal: AbortSignal.any([given.signal, ...(given.unread ? [given.unread] : [])]) };
  const folder = await demoFolder(keep, parts);
  const log = await openLog({ level: "warn", descriptor: 2, pretty: io.interactive, fields: { agent: "demo" } });
  parts.defer(() => log.flush());
  const metrics = metricsRegistry();
  const runtime = systemRuntime(log, metrics);
  return { io, folder, log, metrics, runtime, from: runtime.clock.now() };
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

export function demoServiceOptions(folder: string, port: number): LocalServiceOptions {
  return {
    listen: { host: "127.0.0.1", port },
    data: join(folder, "service"),
    integrations: [{ id: integration, password: new Secret(password), grants: ["admin", "platform"] }],
    namespace,
    throttle: "queue",
  };
}

/** The service's counters of the agent's requests, taken before reading back. */
export function seen(service: Service): { readonly requests: number; readonly maxRate: number } {
  const traffic = [...service.counters().values()];
  return {
    requests: traffic.reduce((sum, { requests }) => sum + requests, 0),
    maxRate: Math.max(0, ...traffic.map(({ maxStartsPerSecond }) => maxStartsPerSecond)),
  };
}

/** Reads back what the service has stored since `from`, and compares it with what the devices delivered. */
export function compared(
  service: Service,
  devices: DemoDevices,
  from: EpochMicros,
  runtime: Runtime,
  signal: AbortSignal,
): Promise<Comparison> {
  return readBackAndCompare(
    { url: service.url, integration, password, apiVersion: "1.1beta1", namespace },
    devices.delivered(),
    { from: epochMicros(from - 3_600e6), before: epochMicros(runtime.clock.now() + 3_600e6) },
    runtime,
    signal,
  );
}
