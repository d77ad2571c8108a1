// The programs of peers, compiled once for each version of their source and kept in the user's cache.
import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { mkdir, readFile, rename, rm } from "node:fs/promises";
import { homedir } from "node:os";
import { join } from "node:path";

export const peerCache = join(process.env.XDG_CACHE_HOME ?? join(homedir(), ".cache"), "tagferry-peers");

/**
 * The path of the program `name`, built from these files. `make` compiles it to `output` in a temporary folder. It is
 * called only if the cache has no program of this source. Rejects as `make` does.
 */
export async function peerProgram(
  name: string,
  sources: readonly string[],
  make: (folder: string, output: string) => Promise<void>,
): Promise<string> {
  const hash = createHash("sha256");
  for (const source of sources) hash.update(await readFile(source));
  const program = join(peerCache, `${name}-${hash.digest("hex").slice(0, 12)}`);
  if (existsSync(program)) return program;
  // Renamed when complete, because two test files may build it at the same time.
  const making = `${program}.${process.pid}`;
  await mkdir(making, { recursive: true });
  try {
    const output = join(making, "program");
    await make(making, output);
    await rename(output, program);
  } finally {
    await rm(making, { recursive: true, force: true });
  }
  return program;
}
