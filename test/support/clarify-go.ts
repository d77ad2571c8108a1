// Clarify's Go client as a peer: a program that uses it, and its own integration suite. Needs Go to download the
// module.
import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { peerProgram } from "./peer-program.ts";

const run = promisify(execFile);
const folder = join(import.meta.dirname, "clarify-go");
const sources = ["go.mod", "go.sum", "main.go"].map((name) => join(folder, name));
const options = { cwd: folder, env: { ...process.env, CGO_ENABLED: "0" } };

/** Path of the compiled program. */
export function clarifyGoProgram(): Promise<string> {
  return peerProgram("clarify-go", sources, async (_, output) => {
    await run("go", ["build", "-buildvcs=false", "-o", output, "."], options);
  });
}

/** Path of the compiled suite of the module. */
export function clarifyGoSuite(): Promise<string> {
  return peerProgram("clarify-go-suite", sources, async (_, output) => {
    await run("go", ["test", "-c", "-o", output, "github.com/clarify/clarify-go/test"], options);
  });
}
