// One owner for a data directory: a lock of the kernel on a file, which is gone when its process is, however it ended, and
// which holds across containers on one host. Node has no call for such locks; SQLite has, and is built in.
//
// The file must not be opened in any other way: POSIX drops a lock when any descriptor of the process on it closes.
import { accessSync, constants, truncateSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { AgentError } from "../../core/errors.ts";

export interface FolderLock extends Disposable {
  /**
   * False on a volume that cannot be written: the kernel gives only shared locks there. Several processes may hold one, and
   * none of them may ever write, also when the volume can be written later.
   */
  readonly exclusive: boolean;
  /** The volume can be written by now: who holds a shared lock has to give it back, to read everything anew and to lock again. */
  readonly outlived: boolean;
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
    if (/locked|busy/.test(message))
      throw new AgentError("DATA_DIR_IN_USE", `${folder} is in use by another process`, { cause: error });
    if (!message.includes("not a database")) throw error;
    // A damaged disk put bytes into it. SQLite asks for the lock before it reads them, so nobody holds it: it may be opened
    // and emptied. Whoever does the same meanwhile empties what is empty.
    truncateSync(path);
    return lockFolder(folder);
  }
}

function lock(path: string): FolderLock {
  const database = new DatabaseSync(path, { timeout: 0 });
  try {
    // A journal in a file would need room: a volume without a byte left would keep the agent from starting.
    database.exec("PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE");
    const exclusive = isWritable(database);
    return {
      exclusive,
      get outlived() {
        return !exclusive && mayWrite(path);
      },
      [Symbol.dispose]: () => database.close(),
    };
  } catch (error) {
    database.close();
    throw error;
  }
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
  try {
    accessSync(path, constants.W_OK);
    return true;
  } catch {
    return false;
  }
}
