// The local service in its own process, so that it can be killed, and measured separately from its clients.
// Started with { data, throttle } as JSON. Answers every message with its resource usage since the previous one.
import { fork } from "node:child_process";
import { monitorEventLoopDelay } from "node:perf_hooks";
import { fileURLToPath } from "node:url";
import { Secret } from "../../src/core/secret.ts";
import { openService } from "../../src/service/service.ts";
import { testRuntime } from "./runtime.ts";
import { integration, password } from "./service.ts";

/** Since the previous message. */
export interface ServiceUsage {
  readonly peakRssMiB: number;
  readonly longestBlockMs: number;
  readonly cpuMs: number;
}

export interface ServiceProcess extends AsyncDisposable {
  readonly url: string;
  usage(): Promise<ServiceUsage>;
  /** Sends SIGKILL. Resolves when the process has ended. */
  kill(): Promise<void>;
}

export async function serviceProcess(data: string): Promise<ServiceProcess> {
  const child = fork(fileURLToPath(import.meta.url), [data], { stdio: ["ignore", "inherit", "inherit", "ipc"] });
  const exited = new Promise<void>((resolve) => child.once("exit", () => resolve()));
  const answer = () =>
    new Promise<unknown>((resolve, reject) => {
      child.once("message", resolve);
      void exited.then(() => reject(new Error("the service has ended")));
    });
  const url = String(await answer());
  const kill = async () => {
    child.kill("SIGKILL");
    await exited;
  };
  return {
    url,
    async usage() {
      const asked = answer();
      child.send("usage");
      return (await asked) as ServiceUsage; // `main` below sends it
    },
    kill,
    [Symbol.asyncDispose]: kill,
  };
}

async function main(data: string): Promise<void> {
  const service = await openService(
    {
      listen: { host: "127.0.0.1", port: 0 },
      data,
      integrations: [{ id: integration, password: new Secret(password), grants: ["admin", "platform"] }],
      namespace: "platform",
      throttle: "off",
    },
    testRuntime(),
    new AbortController().signal,
  );
  const loop = monitorEventLoopDelay({ resolution: 1 });
  loop.enable();
  let peak = 0;
  let cpu = process.cpuUsage();
  setInterval(() => {
    peak = Math.max(peak, process.memoryUsage.rss());
  }, 5);
  process.on("message", () => {
    const used = process.cpuUsage(cpu);
    const usage: ServiceUsage = {
      peakRssMiB: Math.max(peak, process.memoryUsage.rss()) / 2 ** 20,
      longestBlockMs: loop.max / 1e6,
      cpuMs: (used.user + used.system) / 1_000,
    };
    cpu = process.cpuUsage();
    peak = 0;
    loop.reset();
    process.send?.(usage);
  });
  // Ends with the process that started it.
  process.on("disconnect", () => process.kill(process.pid, "SIGKILL"));
  process.send?.(service.url);
}

const [, entry, data] = process.argv;
if (entry === fileURLToPath(import.meta.url) && data !== undefined && process.send) await main(data);
