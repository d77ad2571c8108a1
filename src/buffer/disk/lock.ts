// One owner for a data directory: a lock of the kernel on a file, which is gone when its process is, however it ended, and
// which holds across containers on one host. Node has no call for such locks; SQLite has, and is built in.
//
// The file must not be opened in any other way: POSIX drops a lock when any descriptor of the process on it closes.
import { DatabaseSync } from "node:sqlite";
import { AgentError } from "../../core/errors.ts";

/** Holds `LOCK` in `folder` until disposed. Throws `DATA_DIR_IN_USE` at once when another process or thread holds it, and writes nothing then. */
export function lockFolder(folder: string): Disposable {
  const database = new DatabaseSync(`${folder}/LOCK`, { timeout: 0 });
  try {
    database.exec("PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE");
  } catch (error) {
    database.close();
    if (error instanceof Error && /locked|busy/.test(error.message))
      throw new AgentError("DATA_DIR_IN_USE", `${folder} is in use by another process`, { cause: error });
    throw error;
  }
  return { [Symbol.dispose]: () => database.close() };
}
