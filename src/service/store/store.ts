// The database of the service: opens and locks it, and runs requests as transactions.
import { chmodSync, closeSync, openSync, statSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync, type StatementSync } from "node:sqlite";
import { AgentError, codeOf, isAgentError, reasonOf, remedyOf } from "../../core/errors.ts";
import { makeFolders } from "../../lib/files/paths.ts";
import { lowerBound } from "../../lib/values/lists.ts";
import type { BlockColumns } from "./block-format.ts";
import { joinedBlocks, mergeColumns, sliceColumns } from "./point-run.ts";
import { type PointStore, pointStore, pointTables } from "./point-store.ts";
import { type ResourceStore, resourceStore, resourceTables } from "./resource-store.ts";

const databaseFile = "service.sqlite";
export const logFile = `${databaseFile}-wal`;
/** Layout version. A file with another one is refused. */
const layout = 3;
/** Changed rows between checkpoints, which write 1 to 16 MiB of log. */
const checkpointChanges = 1_000;
/** Most blocks in memory while points of several signals are merged. */
const maxMergedBlocks = 128;

export class ServiceStore implements Disposable {
  readonly #db: DatabaseSync;
  readonly #lock: DatabaseSync | undefined;
  readonly #changes: StatementSync;
  #checkpointed = 0;
  readonly resources: ResourceStore;
  readonly points: PointStore;

  private constructor(db: DatabaseSync, lock: DatabaseSync | undefined, beforeBlock?: () => void) {
    this.#db = db;
    this.#lock = lock;
    this.#changes = db.prepare("SELECT total_changes() AS changes");
    this.resources = resourceStore(db);
    this.points = pointStore(db, beforeBlock);
  }

  /**
   * `:memory:` persists nothing. Throws `DATA_DIR_UNWRITABLE`, `DATA_DIR_IN_USE`, `BUFFER_NEWER`, `BUFFER_OLDER`, or
   * `BUFFER_UNAVAILABLE` if the disk is full or the database damaged.
   */
  static open(data: string): ServiceStore {
    if (data === ":memory:") return new ServiceStore(prepared(new DatabaseSync(":memory:")), undefined);
    try {
      makeFolders(data);
    } catch (cause) {
      throw unwritable("create the folder", data, cause);
    }
    keepPrivate(data);
    const lock = locked(join(data, "lock"));
    try {
      return new ServiceStore(prepared(new DatabaseSync(join(data, databaseFile))), lock);
    } catch (error) {
      lock.close();
      if (isAgentError(error)) throw error;
      const path = join(data, databaseFile);
      throw new AgentError("BUFFER_UNAVAILABLE", `cannot open ${path}: ${reasonOf(error)}`, { cause: error });
    }
  }

  /** Opens a read-only connection to a folder that this process has open. `beforeBlock` may throw to end a query. */
  static openReader(data: string, beforeBlock: () => void): ServiceStore {
    const db = new DatabaseSync(join(data, databaseFile), { readOnly: true, timeout: 5_000 });
    db.exec("PRAGMA cache_size = -4096");
    return new ServiceStore(db, undefined, beforeBlock);
  }

  /** Runs `work` on a consistent snapshot, regardless of concurrent commits. */
  snapshot<T>(work: () => T): T {
    this.#db.exec("BEGIN");
    try {
      return work();
    } finally {
      this.#db.exec("COMMIT");
    }
  }

  /** Runs `work` as a transaction, rolled back if it throws. Durable on return. */
  transaction<T>(work: () => T): T {
    this.#db.exec("BEGIN IMMEDIATE");
    try {
      const result = work();
      this.#db.exec("COMMIT");
      return result;
    } catch (error) {
      if (this.#db.isTransaction) this.#db.exec("ROLLBACK");
      this.resources.reload();
      this.points.reload();
      throw error;
    }
  }

  /** Truncates the write-ahead log, unless another connection is reading from it. */
  truncateLog(): void {
    this.#db.exec("PRAGMA wal_checkpoint(TRUNCATE)");
  }

  /** Copies the write-ahead log to the database after enough changes, without waiting for readers. */
  checkpoint(): void {
    const { changes } = this.#changes.get() as { readonly changes: number }; // always returns this row
    if (changes - this.#checkpointed < checkpointChanges) return;
    this.#checkpointed = changes;
    this.#db.exec("PRAGMA wal_checkpoint(PASSIVE)");
  }

  /** An item's points from `from` to before `before`, ascending. At equal times, the signal created last wins. */
  *blocksOf(item: string, from: number, before: number): Generator<BlockColumns> {
    const signals = this.resources.signalsOf(item);
    const [first] = signals;
    if (!first) return;
    if (signals.length === 1) return yield* this.points.scan(first.number, from, before);
    // Merged in parts, since years of points exceed the memory. A part ends where a signal reaches this many blocks.
    const most = Math.max(1, Math.floor(maxMergedBlocks / signals.length));
    for (let at = from, end = before; at < before; at = end, end = before) {
      const parts = signals.map(({ number }) => {
        const blocks: BlockColumns[] = [];
        for (const block of this.points.scan(number, at, end)) {
          blocks.push(block);
          if (blocks.length < most) continue;
          end = block.times.at(-1)! + 1;
          break;
        }
        return joinedBlocks(blocks);
      });
      const cut = parts.map((part) => sliceColumns(part, 0, lowerBound(part.times, end)));
      const merged = cut.reduce(mergeColumns);
      if (merged.times.length > 0) yield merged;
    }
  }

  [Symbol.dispose](): void {
    this.#db.close();
    this.#lock?.close();
  }
}

function prepared(db: DatabaseSync): DatabaseSync {
  // FULL: with NORMAL, WAL commits are not synced, and a power cut could lose an acknowledged request.
  db.exec("PRAGMA page_size = 8192; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA cache_size = -8192");
  // `checkpoint` does it between requests, so that no commit waits for it.
  db.exec("PRAGMA wal_autocheckpoint = 0");
  const version = Number(db.prepare("PRAGMA user_version").get()?.["user_version"]);
  // A new file has version 0.
  if (version !== layout && version !== 0) {
    db.close();
    const code = version > layout ? "BUFFER_NEWER" : "BUFFER_OLDER";
    const hint = "nothing was changed: read it with the version that wrote it, or move the folder away";
    throw new AgentError(code, `the service's file has layout ${version}, this version knows ${layout}`, { hint });
  }
  db.exec(`BEGIN; ${resourceTables} ${pointTables} PRAGMA user_version = ${layout}; COMMIT`);
  return db;
}

function unwritable(what: string, path: string, cause: unknown): AgentError {
  const reason = reasonOf(cause);
  // The reason of a call to the file system begins with the path.
  const message = `cannot ${what} ${reason.startsWith(path) ? "" : `${path}: `}${reason}`;
  return new AgentError("DATA_DIR_UNWRITABLE", message, { hint: remedyOf(cause), cause });
}

/** A lock that the operating system releases when the process ends. */
function locked(path: string): DatabaseSync {
  let lock: DatabaseSync | undefined;
  try {
    lock = new DatabaseSync(path, { timeout: 0 });
    lock.exec("PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = DELETE; BEGIN EXCLUSIVE");
    return lock;
  } catch (cause) {
    lock?.close();
    // SQLITE_BUSY
    if (cause instanceof Error && "errcode" in cause && cause.errcode === 5)
      throw new AgentError("DATA_DIR_IN_USE", `another service runs on ${path.slice(0, -"/lock".length)}`, { cause });
    throw unwritable("write", path, cause);
  }
}

/** SQLite creates its auxiliary files with the mode of the database, so the databases are created first. */
const databases = ["lock", databaseFile];
const others = ["lock-journal", logFile, "service.sqlite-shm", "service.sqlite-journal", "token.key"];

/** Creates databases and restricts all files to mode 0600 before they are opened. Throws `DATA_DIR_UNWRITABLE`. */
function keepPrivate(folder: string): void {
  for (const name of databases) create(join(folder, name));
  for (const name of [...databases, ...others]) restrict(join(folder, name));
}

/** Must not open an existing file: closing it would release this process's locks on it (fcntl(2)). */
function create(path: string): void {
  try {
    closeSync(openSync(path, "wx", 0o600));
  } catch (cause) {
    if (codeOf(cause) !== "EEXIST") throw unwritable("write", path, cause);
  }
}

function restrict(path: string): void {
  // Windows has no permission bits, and refuses to set them for a locked file.
  if (process.platform === "win32") return;
  try {
    if ((statSync(path).mode & 0o777) !== 0o600) chmodSync(path, 0o600);
  } catch (cause) {
    if (codeOf(cause) === "ENOENT") return;
    throw unwritable("set mode 0600 of", path, cause);
  }
}
