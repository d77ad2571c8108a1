// A copy of the project in which safeguards are taken out, and the process that runs tests on it: see `runner.ts`.
import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { once } from "node:events";
import { cpSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { temporaryFolder } from "../temporary-folder.ts";
import type { Result, Trial } from "./runner.ts";

const root = join(import.meta.dirname, "../../..");

export class Workbench implements AsyncDisposable {
  readonly #copy = temporaryFolder();
  readonly #runner: ChildProcessWithoutNullStreams;
  readonly #results: AsyncIterator<string>;
  #stderr = "";

  constructor() {
    for (const part of [
      "src",
      "test/support",
      "test/unit",
      "test/integration",
      "test/vitest.config.ts",
      "package.json",
    ])
      cpSync(join(root, part), this.#copy.file(part), { recursive: true });
    symlinkSync(join(root, "node_modules"), this.#copy.file("node_modules"));
    const { TAGFERRY_PEERS: _peers, TAGFERRY_RESULTS: _results, ...env } = process.env;
    this.#runner = spawn(process.execPath, [this.#copy.file("test/support/ablations/runner.ts")], {
      cwd: this.#copy.path,
      env: { ...env, ...shortWaits },
    });
    this.#runner.stderr.on("data", (chunk) => (this.#stderr += chunk));
    this.#results = createInterface({ input: this.#runner.stdout })[Symbol.asyncIterator]();
  }

  /** One at a time. Rejects when the runner has ended. */
  async attempt(trial: Trial): Promise<Result> {
    this.#runner.stdin.write(`${JSON.stringify(trial)}\n`);
    const { done, value } = await this.#results.next();
    if (done === true) throw new Error(`the runner ended: ${this.#stderr}`);
    return JSON.parse(value) as Result;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#runner.stdin.end();
    if (this.#runner.exitCode === null) await once(this.#runner, "exit");
    this.#copy[Symbol.dispose]();
  }
}

/** What does not come true without a safeguard is not waited for as long as on a machine that is busy. */
const shortWaits = { TAGFERRY_WITHIN_MS: "5000" };
