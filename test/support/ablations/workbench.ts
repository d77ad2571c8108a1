// A copy of the project from which safeguards are removed, and the process that runs tests on it: see `runner.ts`.
import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { once } from "node:events";
import { cpSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout } from "node:timers/promises";
import { temporaryFolder } from "../temporary-folder.ts";
import type { Result, Trial } from "./runner.ts";

const root = join(import.meta.dirname, "../../..");

export class Workbench implements AsyncDisposable {
  readonly #copy = temporaryFolder();
  #runner: Runner | undefined;

  constructor() {
    for (const part of [
      "src",
      "test/support",
      "test/contract",
      "test/unit",
      "test/integration",
      "test/fixtures",
      "test/vitest.config.ts",
      "test/tiers.ts",
      "package.json",
    ])
      cpSync(join(root, part), this.#copy.file(part), { recursive: true });
    symlinkSync(join(root, "node_modules"), this.#copy.file("node_modules"));
  }

  /**
   * Not to be called concurrently. Rejects when the tests do not end within `withinMs`, for example in an endless loop.
   */
  async attempt(trial: Trial, withinMs: number): Promise<Result> {
    this.#runner ??= this.#start();
    const { process: child, results, stderr } = this.#runner;
    child.stdin.write(`${JSON.stringify(trial)}\n`);
    const waiting = new AbortController();
    const late = setTimeout(withinMs, "late" as const, { signal: waiting.signal }).catch(() => "late" as const);
    const next = await Promise.race([results.next(), late]);
    waiting.abort();
    if (next !== "late" && next.done !== true) return JSON.parse(next.value) as Result;
    this.#runner = undefined;
    await kill(child);
    // The runner may have been killed before it restored the file.
    if (trial.change) cpSync(join(root, trial.change.file), this.#copy.file(trial.change.file));
    throw new Error(next === "late" ? `the tests did not end within ${withinMs} ms` : `the runner ended: ${stderr()}`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const child = this.#runner?.process;
    child?.stdin.end();
    if (child && child.exitCode === null) await once(child, "exit");
    this.#copy[Symbol.dispose]();
  }

  #start(): Runner {
    const { TAGFERRY_PEERS: _peers, TAGFERRY_RESULTS: _results, ...env } = process.env;
    const child = spawn(process.execPath, [this.#copy.file("test/support/ablations/runner.ts")], {
      cwd: this.#copy.path,
      env,
      // Its own process group, so that its workers end with it.
      detached: true,
    });
    let stderr = "";
    child.stderr.on("data", (chunk) => (stderr += chunk));
    const results = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
    return { process: child, results, stderr: () => stderr };
  }
}

interface Runner {
  readonly process: ChildProcessWithoutNullStreams;
  readonly results: AsyncIterator<string>;
  readonly stderr: () => string;
}

async function kill(child: ChildProcessWithoutNullStreams): Promise<void> {
  if (child.exitCode !== null || child.pid === undefined) return;
  const ended = once(child, "exit");
  process.kill(-child.pid, "SIGKILL");
  await ended;
}
