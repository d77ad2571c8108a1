// Telegraf with the few plug-ins that the bench needs, built from its Go module. Needs Go.
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { peerProgram } from "../../support/peer-program.ts";

const run = promisify(execFile);
const version = "v1.37.2";
const plugIns = [
  "inputs.mqtt_consumer",
  "inputs.modbus",
  "inputs.opcua_listener",
  "outputs.http",
  "outputs.clarify",
  "parsers.json",
  "serializers.json",
];

/**
 * The path of the program. Builds it, which takes minutes, unless the user's cache has a build of this version with
 * these plug-ins.
 */
export function telegrafProgram(): Promise<string> {
  return peerProgram(`telegraf-${version}`, [import.meta.filename], async (folder, output) => {
    const module = `github.com/influxdata/telegraf@${version}`;
    const { stdout } = await run("go", ["mod", "download", "-json", module], { cwd: folder });
    const { Dir: source } = JSON.parse(stdout) as { Dir: string }; // documented by `go help mod download`
    const args = ["build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", `-tags=custom,${plugIns.join(",")}`];
    await run("go", [...args, "-o", output, "./cmd/telegraf"], { cwd: source, maxBuffer: 64 * 2 ** 20 });
  });
}

/** Rejects when a given program lacks a plug-in. */
export async function checkTelegraf(program: string): Promise<void> {
  for (const kind of ["inputs", "outputs"]) {
    const { stdout } = await run(program, ["plugins", kind]);
    const missing = plugIns.filter(
      (name) => name.startsWith(`${kind}.`) && !stdout.includes(name.slice(kind.length + 1)),
    );
    if (missing.length > 0) throw new Error(`${program} lacks ${missing.join(", ")}`);
  }
}
