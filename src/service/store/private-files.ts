// Keeps the files of the service from other users, whatever the folder, the umask or an earlier start allow.
import { chmodSync, closeSync, openSync, statSync } from "node:fs";
import { join } from "node:path";
import { AgentError } from "../../core/errors.ts";

/** SQLite gives its log, its index and its journals the mode of the database, so the databases are made first. */
const databases = ["lock", "service.sqlite"];
const others = ["lock-journal", "service.sqlite-wal", "service.sqlite-shm", "service.sqlite-journal", "token.key"];

/**
 * Makes the databases with mode 0600 where they are missing, and gives 0600 to each file of the service that has
 * another mode. To be called before anything opens them. Throws `DATA_DIR_UNWRITABLE`.
 */
export function keepPrivate(folder: string): void {
  for (const name of databases) create(join(folder, name));
  for (const name of [...databases, ...others]) restrict(join(folder, name));
}

/** Does not open a file that is there: closing it would free the locks that this process has on it (fcntl(2)). */
function create(path: string): void {
  try {
    closeSync(openSync(path, "wx", 0o600));
  } catch (cause) {
    if (codeOf(cause) !== "EEXIST") throw new AgentError("DATA_DIR_UNWRITABLE", `cannot write ${path}`, { cause });
  }
}

function restrict(path: string): void {
  try {
    if ((statSync(path).mode & 0o777) !== 0o600) chmodSync(path, 0o600);
  } catch (cause) {
    if (codeOf(cause) === "ENOENT") return;
    throw new AgentError("DATA_DIR_UNWRITABLE", `cannot set mode 0600 of ${path}`, { cause });
  }
}

function codeOf(error: unknown): unknown {
  return error instanceof Error && "code" in error ? error.code : undefined;
}
