// One owner for a data directory: a lock of the kernel on a file, which is gone when its process is, however it ended, and
// which holds across containers on one host. Node has no call for such locks; SQLite has, and is built in.
//
// The file must not be opened in any other way: POSIX drops a lock when any descriptor of the process on it closes.
import { accessSync, constants, statSync, truncateSync } from "node:fs";
import { dirname } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { AgentError, reasonOf, remedyOf } from "../../../core/errors.ts";
import { attempt } from "../../../lib/attempt.ts";
import { diskErrorCode } from "./disk.ts";

/**
 * `held`: the folder is as it was locked. `outlived`: others may have written since, or the volume was mounted anew, so
 * whoever holds the lock has to give it back, to read everything anew and to lock again. `away`: the folder is gone, or one
 * that is no buffer has its place, as where a volume was taken off; what is written now would not be found again.
 */
export type LockState = "held" | "outlived" | "away";

export interface FolderLock extends Disposable {
  /**
   * False on a volume that cannot be written: the kernel gives only shared locks there. Several processes may hold one, and
   * none of them may ever write, also when the volume can be written later.
   */
  readonly exclusive: boolean;
  /** Checks the lock. If `LOCK` was deleted, creates and locks it again, unless another process was faster. */
  state(): LockState;
}

/**
 * Holds `LOCK` in `folder` until disposed. Throws `DATA_DIR_IN_USE` at once when another process or thread holds it, and
 * writes nothing then.
 */
export function lockFolder(folder: string): FolderLock {
  const path = `${folder}/LOCK`;
  try {
    return lock(path);
  } catch (error) {
    const message = error instanceof Error ? error.message : "";
    if (isInUse(error))
      throw new AgentError("DATA_DIR_IN_USE", `${folder} is in use by another process`, { cause: error });
    // SQLite does not say why.
    if (message.includes("unable to open")) throw whyNot(path) ?? error;
    if (!message.includes("not a database")) throw error;
    // A damaged disk put bytes into it. SQLite asks for the lock before it reads them, so nobody holds it: it may be opened
    // and emptied. Whoever does the same meanwhile empties what is empty.
    truncateSync(path);
    return lockFolder(folder);
  }
}

/** What the system says of a file that cannot be opened, found out without opening it. Undefined: nothing. */
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
      if (now === file) return !exclusive && mayWrite(path) ? "outlived" : "held";
      if (now !== undefined) return "outlived";
      if (identity(dirname(path)) !== folder) return "away";
      if (!exclusive) return "outlived";
      try {
        const next = openLocked(path);
        database.close();
        ({ database, exclusive } = next);
        file = identity(path);
        return "held";
      } catch (error) {
        // If it cannot be created, no other process has it either, and stored points must still be delivered and removed.
        return isInUse(error) ? "outlived" : "held";
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
    // A journal in a file would need room: a volume without a byte left would keep the agent from starting.
    database.exec("PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE");
    return { database, exclusive: isWritable(database) };
  } catch (error) {
    database.close();
    throw error;
  }
}

/** Which file or folder there is under this name, found out without opening it. Undefined: none that can be seen. */
function identity(path: string): string | undefined {
  return attempt(() => {
    // Some file systems number their files beyond 2^53.
    const { dev, ino } = statSync(path, { bigint: true });
    return `${dev}:${ino}`;
  });
}

/** SQLite begins without an error what it can only read. A table that is taken back before it was written down makes it say so. */
function isWritable(database: DatabaseSync): boolean {
  try {
    database.exec("SAVEPOINT ask; CREATE TABLE ask (answer); ROLLBACK TO ask");
    return true;
  } catch (error) {
    if (error instanceof Error && error.message.includes("readonly")) return false;
    throw error;
  }
}

/** Asks without opening: see above. */
function mayWrite(path: string): boolean {
  return attempt(() => accessSync(path, constants.W_OK) === undefined) ?? false;
}
