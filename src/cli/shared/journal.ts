// The log of an agent that does not answer, as systemd keeps it.
import { execFile } from "node:child_process";
import { promisify } from "node:util";

const unit = "tagferry";
const lines = 5_000;

/** Rejects where there is no journal, none that this user may read, or nothing in it. */
export async function journalLines(signal: AbortSignal): Promise<string> {
  const args = ["--unit", unit, "--lines", String(lines), "--output", "cat", "--no-pager", "--quiet"];
  const { stdout } = await promisify(execFile)("journalctl", args, { signal, timeout: 20_000, maxBuffer: 2 ** 26 });
  if (stdout.trim() === "") throw new Error("the journal has nothing");
  return stdout;
}
