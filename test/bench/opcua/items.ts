// The cost of the OPC UA source: node test/bench/opcua/items.ts [items] [interval in ms] [--seconds 20 | --minutes 10].
// The source is bundled and run like the agent, in its own process. The server (node-opcua-server) runs in a third
// process.
import { spawn } from "node:child_process";
import { writeFileSync } from "node:fs";
import { cpus, loadavg } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { parseArgs } from "node:util";
import { build } from "esbuild";
import { temporaryFolder } from "../../support/temporary-folder.ts";

const { values, positionals } = parseArgs({
  options: { seconds: { type: "string", default: "20" }, minutes: { type: "string" } },
  allowPositionals: true,
});
const [items = 10_000, everyMs = 1_000] = positionals.map(Number);
const seconds = values.minutes === undefined ? Number(values.seconds) : 60 * Number(values.minutes);
const script = (name: string) => join(import.meta.dirname, name);

using folder = temporaryFolder();
writeFileSync(folder.file("package.json"), '{ "type": "module" }');
await build({
  entryPoints: [script("items-client.ts")],
  outdir: folder.path,
  bundle: true,
  splitting: true,
  minify: true,
  platform: "node",
  format: "esm",
  target: "node24",
  external: ["proper-lockfile"],
  banner: { js: 'import{createRequire as requireFrom}from"node:module";const require=requireFrom(import.meta.url);' },
});
const server = spawn(process.execPath, [script("server.ts"), folder.file("server"), String(items), String(everyMs)], {
  stdio: ["pipe", "pipe", "inherit"],
});
const ready = await new Promise<string>((resolve) => createInterface(server.stdout).once("line", resolve));
const { port } = JSON.parse(ready) as { port: number }; // printed by server.ts
const load = { port, items, everyMs, seconds, stateDir: folder.file("state") };
// The agent's own flags; it sets the second one itself (`boundGarbage`).
const flags = ["--max-semi-space-size=4", "--heap-growing-percent=40", "--expose-gc"];
const before = loadavg()[0]?.toFixed(1);
const client = spawn(process.execPath, [...flags, folder.file("items-client.js"), JSON.stringify(load)], {
  stdio: ["ignore", "inherit", "inherit"],
});
await new Promise((resolve) => client.once("exit", resolve));
server.stdin.end();
console.log({
  machine: `${cpus().length} x ${cpus()[0]?.model}, Node ${process.version}`,
  load: `${before} before, ${loadavg()[0]?.toFixed(1)} after`,
});
