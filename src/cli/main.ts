#!/usr/bin/env -S node --max-semi-space-size=4 --expose-gc --disable-sigusr1 --disallow-code-generation-from-strings --disable-proto=delete
// Starts the program. Only here may the process be ended.
import { enableCompileCache } from "node:module";
import { startLogWorker } from "../buffer/disk/worker/worker-port.ts";
import { parseRunShortcut } from "./shared/default-config.ts";

// Type stripping and parsing cost 11 ms a thousand lines; from the cache they cost a tenth.
enableCompileCache();
const args = process.argv.slice(2);
const config = parseRunShortcut(args, { variables: process.env, cwd: process.cwd() });
// No await here: the built program is loaded by `require`, from a file that a Node of any version can read.
const ended = config === undefined ? import("./program.ts").then(({ main }) => main(args)) : runAgent(config);
void ended.then((status) => (config === undefined ? exitWhenRead(status) : process.exit(status)));

/** The log thread starts on a core of its own, while this one loads the rest and reads the configuration. */
async function runAgent(config: string): Promise<number> {
  const thread = startLogWorker();
  return await (await import("./agent-program.ts")).runAgent(config, thread);
}

/** Ends once the readers of both pipes have taken everything: what a pipe has no room for would be lost with the process. */
function exitWhenRead(status: number): void {
  process.stdout.write("", () => process.stderr.write("", () => process.exit(status)));
}
