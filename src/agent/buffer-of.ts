import { constants } from "node:fs";
import { access } from "node:fs/promises";
import { join } from "node:path";
import type { DiskBufferOptions } from "../buffer/disk/disk-buffer.ts";
import type { Config } from "../config/format/config.ts";
import { AgentError, codeOf, fileFailure } from "../core/errors.ts";
import { makeFolders } from "../lib/files/paths.ts";

export function bufferOf({ agent, service, buffer }: Config): DiskBufferOptions {
  const directory = join(agent.dataDir, "buffer");
  return { directory, integration: service.integration, config: buffer, requestBytes: service.limits.maxRequest };
}

/** Creates the buffer's folder. Rejects with `DATA_DIR_UNWRITABLE` if it cannot be used. */
export async function prepareBufferFolder(config: Config): Promise<void> {
  const { directory } = bufferOf(config);
  try {
    makeFolders(directory);
    await access(directory, constants.R_OK | constants.W_OK | constants.X_OK);
  } catch (cause) {
    const failure = fileFailure(cause);
    // Opening the buffer reports all other errors, and a read-only disk with the option to change.
    if (!failure || codeOf(cause) === "EROFS") return;
    throw new AgentError("DATA_DIR_UNWRITABLE", failure.message, { hint: failure.remedy, cause });
  }
}
