// The token in the data directory. A user who can read it may change the running agent.
import { randomBytes } from "node:crypto";
import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Logger } from "../../core/runtime.ts";
import { Secret } from "../../core/secret.ts";

/**
 * Writes a new token with mode 0600; disposing it deletes the file. Requires the lock of the data directory. If writing
 * fails, no client can know the token.
 */
export async function openControlToken(dataDir: string, log: Logger) {
  const text = randomBytes(32).toString("base64url");
  const file = join(dataDir, controlTokenName);
  try {
    // Valid for this run only, so there is no sync. A partly written token is rejected by `controlTokenIn`.
    await rm(file, { force: true });
    await writeFile(file, `${text}\n`, { mode: 0o600, flag: "wx" });
  } catch (error) {
    log.warn({ file, err: error }, "cannot write control.token; tagferry reload needs http.token");
  }
  return {
    token: new Secret(text),
    file,
    [Symbol.asyncDispose]: () => rm(file, { force: true }).catch(() => {}),
  };
}

export const controlTokenName = "control.token";

/** The token in the content of such a file. Undefined: `content` is not a token file. */
export function controlTokenIn(content: string): string | undefined {
  return /^([A-Za-z0-9_-]{43})\n$/.exec(content)?.[1];
}
