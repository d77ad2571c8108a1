// The token of those who may read the data directory: whoever can, may ask the running agent for a change.
import { randomBytes } from "node:crypto";
import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Logger } from "../../core/runtime.ts";
import { Secret } from "../../core/secret.ts";

/**
 * Writes a new one, mode 0600; disposing it deletes the file. Call it under the lock of the data directory. Where the
 * file cannot be written nobody will know the token, and that is logged.
 */
export async function openControlToken(dataDir: string, log: Logger) {
  const text = randomBytes(32).toString("base64url");
  const file = join(dataDir, controlTokenName);
  try {
    // Of no use after this run, so that nobody waits for the disk. A half of it is no token (`controlTokenIn`).
    await rm(file, { force: true });
    await writeFile(file, `${text}\n`, { mode: 0o600, flag: "wx" });
  } catch (error) {
    log.warn({ file, err: error }, "tagferry reload will need http.token: the file of the other token is not written");
  }
  return {
    token: new Secret(text),
    file,
    [Symbol.asyncDispose]: () => rm(file, { force: true }).catch(() => {}),
  };
}

export const controlTokenName = "control.token";

/** What stands in such a file; undefined: `content` is that of another file, and nobody's business. */
export function controlTokenIn(content: string): string | undefined {
  return /^([A-Za-z0-9_-]{43})\n$/.exec(content)?.[1];
}
