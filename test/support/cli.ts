// The command line as a user types it.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { program } from "./program.ts";

export interface Ended {
  readonly status: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs `tagferry` with these arguments until it ends. */
export function tagferry(args: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<Ended> {
  return programAt(program, args, env);
}

/** Like `tagferry`, for the program with the entry file `main`. */
export async function programAt(
  main: string,
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<Ended> {
  const child = spawn(process.execPath, [main, ...args], {
    stdio: ["ignore", "pipe", "pipe"],
    env: { ...process.env, ...env },
  });
  const ended = { stdout: "", stderr: "" };
  child.stdout.on("data", (chunk) => (ended.stdout += String(chunk)));
  child.stderr.on("data", (chunk) => (ended.stderr += String(chunk)));
  await once(child, "close");
  return { status: child.exitCode, ...ended };
}
