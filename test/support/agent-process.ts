// The agent as users run it: a separate process that can be killed and restarted.
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
  /** Resolves with the answer of `/api/status`. */
  status(): Promise<Status>;
  /** Sends SIGKILL. Resolves when the process has ended. */
  kill(): Promise<void>;
  /** Sends SIGTERM. Resolves with the exit status. */
  stop(): Promise<number | null>;
}

export interface AgentProcessOptions {
  /** The folder of configuration and data. Starting with the same folder is a restart. */
  readonly folder: string;
  /** YAML. The caller sets `agent.dataDir` and `http.listen`. */
  readonly configuration: string;
  /** A program to start instead of `program`, for tests that remove a safeguard. */
  readonly entry?: string;
  readonly env?: Readonly<Record<string, string>>;
  /** Node flags before the program; default: those of the shipped program. */
  readonly nodeOptions?: readonly string[];
  /** The maximum time until it is ready, in milliseconds; default 90,000. */
  readonly readyWithinMs?: number;
}

/** Resolves once the agent reports that it is ready. Rejects with its log when it ends before. */
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
    // Waits for its end, so that the next start finds the data directory unlocked.
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
