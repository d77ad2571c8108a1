// Three NATS servers of the demo's cluster, as processes on loopback ports.
import { type ChildProcess, spawn } from "node:child_process";
import { accessSync, constants } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { delimiter, join } from "node:path";
import { AgentError } from "../core/errors.ts";
import { attempt } from "../lib/flow/attempt.ts";
import { onFreePorts } from "./free-ports.ts";

interface DemoServer {
  readonly name: string;
  readonly url: string;
  /** SIGKILL. Resolves when the process is gone. */
  kill(): Promise<void>;
}

export interface DemoServers extends AsyncDisposable {
  readonly servers: readonly DemoServer[];
}

const host = "127.0.0.1";

/** The program to start. Rejects with `PACKAGE_MISSING` if `named` cannot be run, or if there is none in `path`. */
export function natsServerProgram(named: string | undefined, path: string): string {
  const candidates = named === undefined ? path.split(delimiter).map((folder) => join(folder, "nats-server")) : [named];
  const program = candidates.find((file) => attempt(() => accessSync(file, constants.X_OK) === undefined));
  if (program !== undefined) return program;
  throw new AgentError(
    "PACKAGE_MISSING",
    named === undefined
      ? "the demo of a cluster needs nats-server, which is not in PATH: name it with --nats-server FILE"
      : `${named} is not a program that can be run`,
    { hint: "nats-server 2.10.23 or later is one file: https://github.com/nats-io/nats-server/releases" },
  );
}

/** Resolves once the servers take connections. Disposing them ends the processes. */
export async function openNatsServers(program: string, folder: string): Promise<DemoServers> {
  // Routes name each other's ports, so the servers cannot choose them.
  return await onFreePorts(6, (ports) => openOn(ports, program, folder));
}

async function openOn(free: readonly number[], program: string, folder: string): Promise<DemoServers> {
  await using opening = new AsyncDisposableStack();
  const ports = ["n1", "n2", "n3"].map((name, i) => ({ name, client: free[i] ?? 0, routes: free[i + 3] ?? 0 }));
  const routes = ports.map((server) => `"nats://${host}:${server.routes}"`).join(", ");
  await mkdir(folder, { recursive: true });
  const servers = await Promise.all(
    ports.map(async ({ name, client, routes: own }): Promise<DemoServer> => {
      const file = join(folder, `${name}.conf`);
      await writeFile(
        file,
        `server_name: ${name}
listen: "${host}:${client}"
jetstream { store_dir: ${JSON.stringify(join(folder, name))} }
cluster { name: demo, listen: "${host}:${own}", routes: [${routes}] }
`,
      );
      const child = spawn(program, ["-c", file], { stdio: ["ignore", "ignore", "pipe"] });
      const kill = () => killed(child);
      opening.defer(kill);
      await ready(child, name);
      return { name, url: `nats://${host}:${client}`, kill };
    }),
  );
  const owned = opening.move();
  return { servers, [Symbol.asyncDispose]: () => owned.disposeAsync() };
}

function ready(child: ChildProcess, name: string): Promise<void> {
  let log = "";
  return new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("exit", () => reject(new AgentError("PACKAGE_MISSING", `nats-server ${name} ended: ${log.trim()}`)));
    child.stderr?.setEncoding("utf8").on("data", (text: string) => {
      log = (log + text).slice(-2_000);
      // It takes clients first and then servers, and ends if the port for either is taken.
      if (log.includes("Server is ready") && log.includes("Listening for route connections")) resolve();
    });
  });
}

/** Kills a process. Resolves when it is gone. */
export async function killed(child: ChildProcess): Promise<void> {
  if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return;
  const gone = new Promise((resolve) => child.once("exit", resolve));
  child.kill("SIGKILL");
  await gone;
}
