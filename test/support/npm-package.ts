// npm packages for peers that must not become dependencies because of their licence or size: a folder in the user's
// cache, outside the project, created when it is missing.
import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir, rename, rm } from "node:fs/promises";
import { createRequire } from "node:module";
import { homedir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";

const run = promisify(execFile);

/** The exports of a CommonJS package of exactly this version. Rejects when it is not available. */
export async function npmPackage(name: string, version: string): Promise<unknown> {
  return createRequire(join(await npmPackageFolder(name, version), "index.js"))(name);
}

/**
 * A folder from which a package of exactly this version and its peer dependencies can be required. Rejects like
 * `npmPackage`.
 */
export async function npmPackageFolder(
  name: string,
  version: string,
  ...peerDependencies: readonly string[]
): Promise<string> {
  const cache = join(process.env.XDG_CACHE_HOME ?? join(homedir(), ".cache"), "tagferry-peers");
  const folder = join(cache, `npm-${name.replaceAll(/[^\w.-]/g, "_")}@${version}`);
  if (!existsSync(folder)) {
    // Renamed when complete, because two test files may create it at the same time.
    const making = `${folder}.${process.pid}`;
    await mkdir(making, { recursive: true });
    const quiet = ["--ignore-scripts", "--no-audit", "--no-fund", "--silent"];
    await run("npm", ["install", "--prefix", making, ...quiet, `${name}@${version}`, ...peerDependencies], {
      cwd: making,
    });
    await rename(making, folder).catch(() => rm(making, { recursive: true, force: true }));
  }
  return folder;
}
