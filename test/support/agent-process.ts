// The agent as its users run it: a process of its own that can be killed and started again.
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { Status } from "../../src/agent/status/status.ts";
import { nodeFlags } from "../../src/cli/shared/node-flags.ts";
import { eventually } from "./eventually.ts";
import { program } from "./program.ts";

export interface AgentProcess extends AsyncDisposable {
  readonly pid: number;
  /** Address of the status page. */
  readonly page: string;
  /** Every line of its log so far, parsed. */
  readonly log: readonly Readonly<Record<string, unknown>>[];
  /** What `/api/status` answers. */
  status(): Promise<Status>;
  /** kill -9. Resolves when the process is gone. */
  kill(): Promise<void>;
  /** SIGTERM. Resolves with the exit status. */
  stop(): Promise<number | null>;
}

export interface AgentProcessOptions {
  /** Folder that keeps configuration and data; the same one again is a restart. */
  readonly folder: string;
  /** YAML; `agent.dataDir` and `http.listen` are the caller's to set. */
  readonly configuration: string;
  /** Program to start instead of `program`, for tests that take a safeguard out. */
  readonly entry?: string;
  readonly env?: Readonly<Record<string, string>>;
  /** Flags of Node, before the program; default: those that it is delivered with. */
  readonly nodeOptions?: readonly string[];
  /** Milliseconds it may take to be ready; 90,000 by default. */
  readonly readyWithinMs?: number;
}

/** Resolves once the agent says that it is ready; rejects with its log when it ends before. */
export async function startAgent(options: AgentProcessOptions): Promise<AgentProcess> {
  const file = join(options.folder, "tagferry.yaml");
  writeFileSync(file, options.configuration);
  const child = spawn(
    process.execPath,
    [...(options.nodeOptions ?? nodeFlags), options.entry ?? program, "run", "-c", file],
    {
      stdio: ["ignore", "inherit", "pipe"],
      env: { ...process.env, ...options.env },
    },
  );
  const log: Readonly<Record<string, unknown>>[] = [];
  createInterface({ input: child.stderr }).on("line", (line) => log.push(parseLine(line)));
  const exited = once(child, "exit");
  const page = await Promise.race([
    eventually(() => log.find((line) => line.msg === "ready")?.page, options.readyWithinMs ?? 90_000),
    exited.then(() => {
      throw new Error(`the agent ended with ${child.exitCode ?? child.signalCode}: ${JSON.stringify(log)}`);
    }),
  ]).catch(async (error: unknown) => {
    // Whoever tries again finds the data directory free.
    if (child.exitCode === null && child.signalCode === null) child.kill("SIGKILL");
    await exited;
    throw error;
  });
  if (typeof page !== "string") throw new Error("the agent is ready without a page");
  return {
    pid: pidOf(child),
    page,
    log,
    async status() {
      const answer = await fetch(new URL("/api/status", page));
      return (await answer.json()) as Status;
    },
    async kill() {
      child.kill("SIGKILL");
      await exited;
    },
    async stop() {
      child.kill("SIGTERM");
      await exited;
      return child.exitCode;
    },
    async [Symbol.asyncDispose]() {
      if (child.exitCode === null && child.signalCode === null) child.kill("SIGKILL");
      await exited;
    },
  };
}

function parseLine(line: string): Readonly<Record<string, unknown>> {
  try {
    return JSON.parse(line) as Readonly<Record<string, unknown>>;
  } catch {
    return { msg: line };
  }
}

function pidOf(child: ChildProcess): number {
  if (child.pid === undefined) throw new Error("the agent could not be started");
  return child.pid;
}
