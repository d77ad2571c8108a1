// `tagferry demo --cluster`: two agents share one integration by way of three NATS servers. The agent that delivers and a
// server are killed; the other agent goes on, and in the end the service has every value.
import { spawn } from "node:child_process";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { Status } from "../../agent/status/status.ts";
import { AgentError, isAgentError } from "../../core/errors.ts";
import type { DemoDevices } from "../../demo/devices.ts";
import { killed, natsServerProgram, openNatsServers } from "../../demo/nats-servers.ts";
import { waitUntil } from "../../lib/flow/repeat.ts";
import type { Service } from "../../service/service.ts";
import { nodeFlags } from "../shared/node-flags.ts";
import type { Console } from "../terminal/console.ts";
import { CommandFailed, type ExitStatus, exitStatus } from "../terminal/exit-status.ts";
import { compareAfter, type DemoOptions, openDemo, requestsAt, serviceSection, signIn } from "./demo-parts.ts";

/** Without a duration, everything has happened after this time, in milliseconds. */
const defaultMs = 60_000;
/** The agent is killed, started again, and the server killed after these shares of the duration. */
const agentGone = 0.25;
const agentBack = 0.6;
const serverGone = 0.7;
const withinMs = 120_000;

type Collector = Awaited<ReturnType<typeof openCollector>>;

/** Rejects with `CommandFailed` if `named` cannot be run, as for any flag. */
function programOf(named: string | undefined, { environment }: Console): string {
  try {
    return natsServerProgram(named, environment.variables.PATH ?? "");
  } catch (error) {
    if (named === undefined || !isAgentError(error)) throw error;
    throw new CommandFailed(`--nats-server ${error.message}\n  ${error.hint}`, exitStatus.usage);
  }
}

export async function clusterDemo(
  { duration = defaultMs, keep, natsServer }: DemoOptions,
  given: Console,
): Promise<ExitStatus> {
  const program = programOf(natsServer, given);
  await using parts = new AsyncDisposableStack();
  const what = "three NATS servers, the devices, the local service and two agents";
  const running = await openDemo(given, keep, what, parts);
  const { io, folder, runtime, service, devices } = running;
  const { servers } = parts.use(await openNatsServers(program, join(folder, "nats")));
  const urls = servers.map(({ url }) => url);
  const start = (name: string, sources: string) =>
    openCollector(join(folder, name), configuration(name, service, urls, sources), name, io.signal);
  const left = () => start("gw-left", devices.configurationOf("mqtt"));
  let first = parts.use(await left());
  const until = async (holds: () => Promise<boolean>, problem: string) => {
    if (await waitUntil(holds, { withinMs, everyMs: 200 }, runtime.clock, io.signal)) return;
    throw new AgentError("CLUSTER_UNREACHABLE", `${problem} after ${withinMs / 1_000} s`);
  };
  await until(async () => (await first.status())?.cluster?.delivers === first.name, "gw-left does not deliver");
  const second = parts.use(await start("gw-right", devices.configurationOf("modbus", "opcua")));
  introduce(io, service, [first, second]);

  return await compareAfter(async () => {
    const began = runtime.clock.monotonic();
    const at = async (share: number) => {
      for (;;) {
        const passed = runtime.clock.monotonic() - began;
        if (passed >= share * duration) return;
        await runtime.clock.sleep(Math.min(1_000, share * duration - passed), io.signal);
        io.print(await line(passed, second, devices, service));
      }
    };
    await at(agentGone);
    io.print("killing gw-left, which delivers for both; the broker keeps its messages");
    await first[Symbol.asyncDispose]();
    await at(agentBack);
    io.print("starting gw-left again");
    first = parts.use(await left());
    await at(serverGone);
    io.print("killing NATS server n1");
    await servers[0]!.kill();
    await at(1);
    await devices.stop(io.signal);
    io.print("waiting until what is in the buffers and in the stream is delivered …");
    const isDrained = async () =>
      (await Promise.all([first.status(), second.status()])).every(
        (status) => status?.buffer.unsettledPoints === 0 && status.cluster?.stream?.messages === 0,
      );
    await until(isDrained, "points still wait");
    return 0;
  }, running);
}

function configuration(name: string, service: Service, servers: readonly string[], sources: string): string {
  return `version: 1
agent: { name: ${name}, ownSignals: off, dataDir: data }
${serviceSection(service)}
http: { listen: "127.0.0.1:0" }
cluster: { servers: ${JSON.stringify(servers)} }
${sources}`;
}

/** Starts an agent as a process of its own. Resolves when it is ready. */
async function openCollector(folder: string, yaml: string, name: string, signal: AbortSignal) {
  await mkdir(folder, { recursive: true });
  const file = join(folder, "tagferry.yaml");
  await writeFile(file, yaml);
  const child = spawn(process.execPath, [...nodeFlags, process.argv[1]!, "run", "-c", file], {
    stdio: ["ignore", "ignore", "pipe"],
    cwd: folder,
  });
  const page = await new Promise<string>((resolve, reject) => {
    let last = "";
    const failed = () => reject(new AgentError("PACKAGE_MISSING", `agent ${name} ended: ${last}`));
    child.once("error", reject);
    child.once("exit", failed);
    signal.addEventListener("abort", () => reject(signal.reason), { once: true });
    createInterface({ input: child.stderr }).on("line", (text) => {
      last = text;
      const found = /"page":"([^"]+)"/.exec(text)?.[1];
      if (found !== undefined) resolve(found);
    });
  }).catch(async (error: unknown) => {
    await killed(child);
    throw error;
  });
  return {
    name,
    page,
    /** Undefined: it does not answer. */
    async status(): Promise<Status | undefined> {
      try {
        const answer = await fetch(new URL("/api/status", page), { signal: AbortSignal.timeout(5_000) });
        return (await answer.json()) as Status; // of this version
      } catch {
        return undefined;
      }
    },
    [Symbol.asyncDispose]: () => killed(child),
  };
}

async function line(passedMs: number, agent: Collector, devices: DemoDevices, service: Service): Promise<string> {
  const cluster = (await agent.status())?.cluster;
  const who = cluster?.delivers === undefined ? "no agent delivers" : `${cluster.delivers} delivers`;
  const stream = cluster?.stream;
  const shown = stream
    ? `${stream.messages} messages in the stream, ${stream.replicasInPlace} of ${stream.replicas} replicas`
    : "the stream has no leader";
  return `${String(Math.round(passedMs / 1_000)).padStart(4)} s  read ${devices.count}, ${who}, ${shown}, ${requestsAt(service)} requests`;
}

function introduce(io: Console, service: Service, agents: readonly Collector[]): void {
  io.print(`
  gw-left (MQTT)               ${agents[0]!.page}
  gw-right (Modbus, OPC UA)    ${agents[1]!.page}
  timeline page                ${service.pageUrl}   ${signIn}
`);
}
