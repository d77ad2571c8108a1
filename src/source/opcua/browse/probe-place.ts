// Which certificates a look uses: the agent's own, so that what it meets can be trusted for the agent, too.
import { constants } from "node:fs";
import { access, mkdir } from "node:fs/promises";
import { dirname, join } from "node:path";

/** Where the certificates of a look are. */
export interface ProbePlace {
  readonly dir: string;
  /** The agent's data directory where this user may not use it: then `dir` is another one, and nothing in it is kept. */
  readonly forbidden?: string;
}

/**
 * The data directory of the agent, made where it is missing: it is before the first run that certificates have to be compared
 * and trusted on both sides. `otherwise` where this user may not read the agent's key or write there.
 */
export async function probePlace(dataDir: string, otherwise: string): Promise<ProbePlace> {
  try {
    await mkdir(dataDir, { recursive: true, mode: 0o700 });
    await usable(dataDir);
    const pki = join(dataDir, "pki");
    for (const folder of [pki, join(pki, "rejected"), join(pki, "own/private")]) await usable(folder);
    return { dir: dataDir };
  } catch {
    return { dir: otherwise, forbidden: dataDir };
  }
}

async function usable(folder: string): Promise<void> {
  await access(folder, constants.R_OK | constants.W_OK | constants.X_OK).catch((error: unknown) => {
    const missing = error instanceof Error && "code" in error && error.code === "ENOENT";
    if (!missing || folder === dirname(folder)) throw error;
  });
}
