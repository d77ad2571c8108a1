// nats-server as a peer: a JetStream cluster of real processes on loopback ports. `$TAGFERRY_NATS_SERVER` is the path
// of the program; by default it is built from its Go module.
import { type ChildProcess, execFile, spawn } from "node:child_process";
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { onFreePorts } from "../../src/demo/free-ports.ts";
import { eventually } from "./eventually.ts";
import { peerProgram } from "./peer-program.ts";
import { resume, suspend } from "./suspend.ts";
import { type TcpProxy, tcpProxy } from "./tcp-proxy.ts";
import { temporaryFolder } from "./temporary-folder.ts";

const run = promisify(execFile);
const version = "2.15.2";

export interface NatsServer {
  readonly name: string;
  readonly port: number;
  readonly url: string;
  readonly pid: number;
  /** The answer of its monitoring port to a path such as `jsz?streams=true`. */
  monitor(path: string): Promise<unknown>;
  kill(): Promise<void>;
  /** Restarts it on the same ports with its data on disk. Resolves when it accepts connections. */
  start(): Promise<void>;
  /** Resolves when it has stopped. Until `resume` its connections stay open. */
  suspend(): Promise<void>;
  resume(): void;
  /** Deletes its data directory. Call it only while the server is stopped. */
  wipe(): void;
  /** Disconnects it from `other`, or from all other servers, in both directions. Clients still reach it. */
  isolate(other?: NatsServer): void;
  rejoin(): void;
}

export interface NatsServers extends AsyncDisposable {
  readonly servers: readonly NatsServer[];
  readonly urls: readonly string[];
  /** Resolves when all running servers report a healthy JetStream: a leader, and all replicas up to date. */
  healthy(withinMs?: number): Promise<void>;
}

export interface NatsServersOptions {
  /** Default 3; 1: no cluster. */
  readonly count?: number;
  /** Lines added to the configuration of each server. */
  readonly config?: readonly string[];
  readonly syncAlways?: boolean;
}

/** The path of the program. */
export function natsServerProgram(): Promise<string> {
  const named = process.env.TAGFERRY_NATS_SERVER;
  if (named) return Promise.resolve(named);
  return peerProgram(`nats-server-${version}`, [], async (folder, output) => {
    const env = { ...process.env, CGO_ENABLED: "0", GOBIN: folder };
    await run("go", ["install", `github.com/nats-io/nats-server/v2@v${version}`], { cwd: folder, env });
    await run("mv", [join(folder, "nats-server"), output]);
  });
}

/** Resolves when the cluster has a leader and accepts connections. */
export async function openNatsServers(options: NatsServersOptions = {}): Promise<NatsServers> {
  const program = await natsServerProgram();
  const { count = 3 } = options;
  return await onFreePorts(3 * count, (ports) => openOn(ports, program, count, options));
}

async function openOn(
  free: readonly number[],
  program: string,
  count: number,
  { config = [], syncAlways = false }: NatsServersOptions,
): Promise<NatsServers> {
  const folder = temporaryFolder();
  const ports = Array.from({ length: count }, (_, i) => ({
    client: free[3 * i]!,
    routes: free[3 * i + 1]!,
    monitor: free[3 * i + 2]!,
  }));
  // A server connects to each other one through a separate proxy. The advertised port is unreachable: otherwise servers
  // that learn of each other by gossip would bypass the proxies.
  const proxies: { readonly ends: readonly [number, number]; readonly proxy: TcpProxy }[] = [];
  for (let i = 0; i < count; i++)
    for (let j = 0; j < count; j++)
      if (i !== j) proxies.push({ ends: [i, j], proxy: await tcpProxy(ports[j]!.routes) });
  const running = new Map<number, ChildProcess>();
  const logs: string[] = [];
  /** Each starts one of the servers. Rejects with its log if it ends before it accepts connections. */
  const launches: (() => Promise<true>)[] = [];

  const servers = ports.map(({ client, routes, monitor }, i): NatsServer => {
    const data = folder.file(`n${i + 1}`);
    const dialled = proxies.filter(({ ends }) => ends[0] === i).map(({ proxy }) => `nats://127.0.0.1:${proxy.port}`);
    const cluster = [
      `cluster { name: plant, listen: "127.0.0.1:${routes}", advertise: "127.0.0.1:1"`,
      `  routes: [${dialled.map((url) => `"${url}"`).join(", ")}], pool_size: 1, no_advertise: true }`,
    ];
    const path = folder.file(`n${i + 1}.conf`);
    writeFileSync(
      path,
      [
        `server_name: n${i + 1}`,
        `listen: "127.0.0.1:${client}"`,
        `http: "127.0.0.1:${monitor}"`,
        `jetstream { store_dir: "${data}"${syncAlways ? ", sync_interval: always" : ""} }`,
        ...(count > 1 ? cluster : []),
        ...config,
      ].join("\n"),
    );
    const child = () => running.get(i);
    const proxiesTo = (other?: NatsServer) =>
      proxies.filter(({ ends }) => ends.includes(i) && (!other || ends.includes(servers.indexOf(other))));
    const launch = async (): Promise<true> => {
      // The kernel ends it when this process ends for any reason, because a killed test cleans up nothing.
      const started = spawn("setpriv", ["--pdeathsig", "KILL", program, "-c", path], {
        stdio: ["ignore", "ignore", "pipe"],
      });
      running.set(i, started);
      let log = "";
      started.stderr.setEncoding("utf8").on("data", (text: string) => {
        log = (log + text).slice(-8_000);
        logs[i] = log;
      });
      // It takes clients first and then servers, and ends if the port for either is taken.
      const signs = ["Server is ready", ...(count > 1 ? ["Listening for route connections"] : [])];
      const state = await eventually(() => {
        if (signs.every((sign) => log.includes(sign))) return "ready";
        return started.exitCode === null && started.signalCode === null ? undefined : "ended";
      });
      if (state === "ended") throw new Error(`nats-server n${i + 1} ended: ${log}`);
      return true;
    };
    launches.push(launch);
    const server: NatsServer = {
      name: `n${i + 1}`,
      port: client,
      url: `nats://127.0.0.1:${client}`,
      get pid() {
        return child()?.pid ?? 0;
      },
      async monitor(what) {
        return (await fetch(`http://127.0.0.1:${monitor}/${what}`)).json();
      },
      async kill() {
        const ending = child();
        if (!ending) return;
        running.delete(i);
        if (ending.exitCode !== null || ending.signalCode !== null) return;
        const ended = new Promise((resolve) => ending.once("exit", resolve));
        ending.kill("SIGKILL");
        await ended;
      },
      // After a kill, another process may hold one of its ports for a while.
      start: async () => {
        await eventually(launch);
      },
      async suspend() {
        if (server.pid > 0) await suspend(server.pid);
      },
      resume() {
        if (server.pid > 0) resume(server.pid);
      },
      wipe: () => rmSync(data, { recursive: true, force: true }),
      isolate: (other) => {
        for (const { proxy } of proxiesTo(other)) proxy.cut();
      },
      rejoin: () => {
        for (const { proxy } of proxiesTo()) proxy.restore();
      },
    };
    return server;
  });

  const all: NatsServers = {
    servers,
    urls: servers.map(({ url }) => url),
    async healthy(withinMs) {
      await eventually(async () => {
        for (const [i, server] of servers.entries()) {
          if (!running.has(i)) continue;
          const health = (await server.monitor("healthz")) as { status: string }; // the format of its monitoring port
          if (health.status !== "ok") return false;
        }
        return true;
      }, withinMs);
    },
    async [Symbol.asyncDispose]() {
      await Promise.all(servers.map((server) => server.kill()));
      await Promise.all(proxies.map(({ proxy }) => proxy[Symbol.asyncDispose]()));
      folder[Symbol.dispose]();
    },
  };
  try {
    await Promise.all(launches.map((launch) => launch()));
    await all.healthy();
  } catch (error) {
    await all[Symbol.asyncDispose]();
    throw new Error(`the cluster does not start: ${logs.join("\n")}`, { cause: error });
  }
  return all;
}
