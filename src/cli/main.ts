#!/usr/bin/env -S node --max-semi-space-size=4 --max-old-space-size=2000 --disable-sigusr1 --disable-proto=delete
// The entry of the program. Only this file may end the process.
import "../lib/text/no-code-from-text.ts";
import { enableCompileCache } from "node:module";
import { startLogWorker } from "../buffer/disk/worker/worker-port.ts";
import type * as AgentProgram from "./agent-program.ts";
import { loadBundle } from "./shared/compiled-bundle.ts";
import { parseRunShortcut } from "./shared/default-config.ts";

// Type stripping and parsing take 11 ms for 1,000 lines; from the cache, a tenth of that.
enableCompileCache();
const args = process.argv.slice(2);
const config = parseRunShortcut(args, { variables: process.env, cwd: process.cwd() });
// No top-level await: the built program is loaded by `require`, from a file that any Node version can parse.
const ended = config === undefined ? import("./program.ts").then(({ main }) => main(args)) : runAgent(config);
void ended.then((status) => (config === undefined ? exitWhenRead(status) : process.exit(status)));

/** The log thread starts on another core while this one loads the rest and reads the configuration. */
async function runAgent(config: string): Promise<number> {
  const thread = startLogWorker();
  if (import.meta.url.endsWith(".ts")) return await (await import("./agent-program.ts")).runAgent(config, thread);
  const program = loadBundle<typeof AgentProgram>(new URL("./agent-program.js", import.meta.url));
  return await program.exports.runAgent(config, thread, program.keep);
}

/** Exits once the readers of both pipes have taken everything. Otherwise unread output would be lost. */
function exitWhenRead(status: number): void {
  process.stdout.write("", () => process.stderr.write("", () => process.exit(status)));
}
