// Python packages for peers that npm does not provide: a virtual environment in the user's cache, created when missing.
import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir, rename, rm } from "node:fs/promises";
import { homedir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";

const run = promisify(execFile);

/**
 * The path of a Python with exactly these packages, such as `pymodbus[serial]==3.11.3`. Rejects if it cannot be
 * created.
 */
export async function pythonWith(...requirements: readonly string[]): Promise<string> {
  const cache = join(process.env.XDG_CACHE_HOME ?? join(homedir(), ".cache"), "tagferry-peers");
  const folder = join(cache, requirements.join("+").replaceAll(/[^\w.+=-]/g, "_"));
  const python = join(folder, "bin", "python");
  if (existsSync(python)) return python;
  // Renamed when complete, because two test files may create it at the same time.
  const making = `${folder}.${process.pid}`;
  await mkdir(cache, { recursive: true });
  await run("python3", ["-m", "venv", making]);
  await run(join(making, "bin", "pip"), ["install", "--quiet", "--disable-pip-version-check", ...requirements]);
  await rename(making, folder).catch(() => rm(making, { recursive: true, force: true }));
  return python;
}
