// Clarify's Go client as a peer: a program that uses it, and its own integration suite. Needs Go to download the
// module.
import { execFile } from "node:child_process";
import { cp, readFile, writeFile } from "node:fs/promises";
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

/**
 * Path of the compiled example of the module that automates: its routine `detect-fire` evaluates an item. The module
 * sends neither the rollup nor the last hour that its own comments name, and would be refused without them.
 */
export function clarifyGoAutomation(): Promise<string> {
  return peerProgram("clarify-go-automation", [...sources, import.meta.filename], async (making, output) => {
    const { stdout } = await run("go", ["mod", "download", "-json", "github.com/clarify/clarify-go@v0.4.0"], options);
    const { Dir: module } = JSON.parse(stdout) as { Dir: string }; // documented by `go help mod download`
    const copy = join(making, "module");
    await cp(module, copy, { recursive: true });
    await run("chmod", ["-R", "u+w", copy]);
    const routine = join(copy, "automation/routine_evaluate_actions.go");
    const sent = "fields.Data().Where(fields.TimeRange(gte, lt))";
    const named = "gte, lt = time.Now().Add(-time.Hour), time.Now()\n\tdataQuery := ";
    const text = await readFile(routine, "utf8");
    if (!text.includes(`dataQuery := ${sent}`)) throw new Error(`${routine} is not as expected`);
    await writeFile(routine, text.replace(`dataQuery := ${sent}`, `${named}${sent}.RollupWindow()`));
    await run("go", ["build", "-buildvcs=false", "-o", output, "./examples/automation_cli"], { ...options, cwd: copy });
  });
}
