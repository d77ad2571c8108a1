// Ensures one owner of a data directory with a kernel lock on a file. The kernel releases it when the process ends for
// any reason, and it holds across containers on one host. Node has no call for such locks, but its built-in SQLite
// takes them.
//
// No other code may open the file: POSIX releases the lock when the process closes any descriptor of it.
import { accessSync, constants, statSync, truncateSync } from "node:fs";
import { dirname } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { AgentError, reasonOf, remedyOf } from "../../../core/errors.ts";
import { attempt } from "../../../lib/flow/attempt.ts";
import { diskErrorCode } from "./disk.ts";

/**
 * `held`: the folder is unchanged since it was locked.
 * `stale`: another process may have written since, or the volume was remounted. The owner must release the lock,
 * lock again, and read everything again.
 * `unmounted`: the folder is missing or was replaced by another one, for example because its volume was unmounted. Data
 * written now would not be found later.
 */
export type LockState = "held" | "stale" | "unmounted";

export interface FolderLock extends Disposable {
  /**
   * False on a read-only volume, where the kernel grants only shared locks. Several processes may hold one; none of
   * them may ever write, even if the volume becomes writable.
   */
  readonly exclusive: boolean;
  /** Checks the lock. If `LOCK` was deleted, creates and locks it again, unless another process was faster. */
  state(): LockState;
}

/**
 * Holds `LOCK` in `folder` until disposed. If another process or thread holds it, throws `DATA_DIR_IN_USE` at once and
 * writes nothing.
 */
export function lockFolder(folder: string): FolderLock {
  const path = `${folder}/LOCK`;
  try {
    return lock(path);
  } catch (error) {
    const message = error instanceof Error ? error.message : "";
    if (isInUse(error))
      throw new AgentError("DATA_DIR_IN_USE", `${folder} is in use by another process`, { cause: error });
    // SQLite does not report the cause.
    if (message.includes("unable to open")) throw whyNot(path) ?? error;
    if (!message.includes("not a database")) throw error;
    // The file contains damaged bytes. SQLite locks the file before it reads them, so no other process holds the lock
    // and the file may be truncated. A second process that also truncates it does no harm.
    truncateSync(path);
    return lockFolder(folder);
  }
}

/** Determines without opening the file why it cannot be opened. Undefined: no cause found. */
function whyNot(path: string): unknown {
  try {
    if (statSync(path).isDirectory()) {
      const cause = Object.assign(new Error("it is a folder"), { code: "EISDIR", syscall: "open", path });
      const message = `cannot write to ${dirname(path)}: ${reasonOf(cause)}`;
      return new AgentError("DATA_DIR_UNWRITABLE", message, { hint: remedyOf(cause), cause });
    }
    accessSync(path, constants.R_OK | constants.W_OK);
    return undefined;
  } catch (error) {
    return diskErrorCode(error) === "ENOENT" ? undefined : error;
  }
}

function lock(path: string): FolderLock {
  let { database, exclusive } = openLocked(path);
  const folder = identity(dirname(path));
  let file = identity(path);
  return {
    get exclusive() {
      return exclusive;
    },
    state() {
      const now = identity(path);
      // A shared lock does not exclude other processes once the volume is writable.
      if (now === file) return !exclusive && mayWrite(path) ? "stale" : "held";
      if (now !== undefined) return "stale";
      if (identity(dirname(path)) !== folder) return "unmounted";
      if (!exclusive) return "stale";
      try {
        const next = openLocked(path);
        database.close();
        ({ database, exclusive } = next);
        file = identity(path);
        return "held";
      } catch (error) {
        // No other process can create `LOCK` either, and stored points must still be delivered and removed.
        return isInUse(error) ? "stale" : "held";
      }
    },
    [Symbol.dispose]: () => database.close(),
  };
}

function isInUse(error: unknown): boolean {
  return error instanceof Error && /locked|busy/.test(error.message);
}

function openLocked(path: string): { readonly database: DatabaseSync; readonly exclusive: boolean } {
  const database = new DatabaseSync(path, { timeout: 0 });
  try {
    // A journal file needs space: the agent could not start on a full volume.
    database.exec("PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE");
    return { database, exclusive: isWritable(database) };
  } catch (error) {
    database.close();
    throw error;
  }
}

/** Device and inode of the path, read without opening it. Undefined: it cannot be read. */
function identity(path: string): string | undefined {
  return attempt(() => {
    // Some file systems use inode numbers above 2^53.
    const { dev, ino } = statSync(path, { bigint: true });
    return `${dev}:${ino}`;
  });
}

/** SQLite opens read-only files without an error. Creating a table, which is rolled back, reveals it. */
function isWritable(database: DatabaseSync): boolean {
  try {
    database.exec("SAVEPOINT ask; CREATE TABLE ask (answer); ROLLBACK TO ask");
    return true;
  } catch (error) {
    if (error instanceof Error && error.message.includes("readonly")) return false;
    throw error;
  }
}

function mayWrite(path: string): boolean {
  return attempt(() => accessSync(path, constants.W_OK) === undefined) ?? false;
}
