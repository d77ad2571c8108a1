// Another Node release from npm, in the user's cache, for tests of behaviour that must hold on both.
import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, rename, rm } from "node:fs/promises";
import { homedir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";

const run = promisify(execFile);

/** The path of a Node of this version, such as `26.10.0`. Rejects when it is not available for this machine. */
export async function otherNode(version: string): Promise<string> {
  const cache = join(process.env.XDG_CACHE_HOME ?? join(homedir(), ".cache"), "tagferry-peers");
  const folder = join(cache, `node-${version}`);
  const node = join(folder, "package", "bin", "node");
  if (existsSync(node)) return node;
  // Renamed when complete, because two test files may create it at the same time.
  await mkdir(cache, { recursive: true });
  const making = await mkdtemp(`${folder}.`);
  const name = `node-linux-${process.arch}`;
  await run("npm", ["pack", "--silent", "--pack-destination", making, `${name}@${version}`]);
  await run("tar", ["xzf", join(making, `${name}-${version}.tgz`), "-C", making, "package/bin/node"]);
  await rm(join(making, `${name}-${version}.tgz`));
  await rename(making, folder).catch(() => rm(making, { recursive: true, force: true }));
  return node;
}
