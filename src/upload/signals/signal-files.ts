// The SQLite files of signals, one row per signal, so that only changes are written. `signals.db`: the catalog.
// `published.db`: the last published state of each signal, to distinguish edits of a person from changes by the agent.
// `tagferry signals publish` may use it concurrently. After its loss, all differences count as edits and stay.
import { existsSync, renameSync, rmSync } from "node:fs";
import { dirname } from "node:path";
import { DatabaseSync, type DatabaseSyncOptions, type StatementSync } from "node:sqlite";
import { pathToFileURL } from "node:url";
import { z } from "zod";
import { reasonOf } from "../../core/errors.ts";
import { type InputId, isInputId, type SignalId } from "../../core/point.ts";
import type { Logger } from "../../core/runtime.ts";
import type { PartialSignalMetadata } from "../../core/signal.ts";
import { ownAs } from "../../lib/files/atomic-file.ts";
import { attempt } from "../../lib/flow/attempt.ts";
import { signalAttributes } from "../../wire/signal-view.ts";
import type { AttributeMap } from "./attribute-map.ts";

/** A row. `metadata` is only present if needed. */
export interface CatalogRow {
  readonly input: InputId;
  /** JSON of the metadata. Undefined: none was given. */
  readonly metadata: string | undefined;
  /** Hash of the current metadata. */
  readonly hash: string | undefined;
  /** Hash of the metadata that the service has. */
  readonly saved: string | undefined;
  /** Signal ID of the service. Undefined: unknown. */
  readonly id: SignalId | undefined;
}

const layout = 1;

/** A power cut may lose recent changes, but not the file. Methods throw if file or disk fail. */
export type CatalogFile = ReturnType<typeof fileIn>;

function fileIn(database: DatabaseSync) {
  /** Whether the disk was full at the last write. */
  let full = false;
  const putRow = database.prepare(
    `INSERT INTO signals (input, metadata, hash, saved, id) VALUES (?, ?, ?, ?, ?)
     ON CONFLICT (input) DO UPDATE SET metadata = coalesce(excluded.metadata, metadata), hash = excluded.hash,
       saved = excluded.saved, id = excluded.id`,
  );
  const metadataOf = database.prepare("SELECT metadata FROM signals WHERE input = ?");

  return {
    /** All rows without metadata. */
    *rows(): Generator<CatalogRow> {
      const all = database.prepare("SELECT input, iif(metadata IS NULL, NULL, hash) AS hash, saved, id FROM signals");
      for (const { input, hash, saved, id } of all.iterate()) {
        if (typeof input !== "string") continue;
        yield {
          // The values were valid when they were stored.
          input: input as InputId,
          metadata: undefined,
          hash: text(hash),
          saved: text(saved),
          id: text(id) as SignalId | undefined,
        };
      }
    },
    metadata: (input: InputId): string | undefined => text(metadataOf.get(input)?.["metadata"]),
    /** Writes rows in a transaction. Undefined metadata stays unchanged. False: the disk is full, nothing was written. */
    put(rows: Iterable<CatalogRow>, log: Logger): boolean {
      try {
        database.exec("BEGIN");
        for (const { input, metadata, hash, saved, id } of rows)
          putRow.run(input, metadata ?? null, hash ?? null, saved ?? null, id ?? null);
        database.exec("COMMIT");
        full = false;
        return true;
      } catch (error) {
        // On a full disk, SQLite has already rolled back.
        if (database.isTransaction) database.exec("ROLLBACK");
        if (!isFullDisk(error)) throw error;
        if (!full) log.warn({ reason: reasonOf(error) }, "the list of signals cannot be written for now");
        full = true;
        return false;
      }
    },
    get target(): string | undefined {
      return text(database.prepare("SELECT name FROM target").get()?.["name"]);
    },
    set target(name: string) {
      database.prepare("INSERT INTO target VALUES (1, ?) ON CONFLICT (one) DO UPDATE SET name = ?").run(name, name);
    },
    [Symbol.dispose](): void {
      database.close();
    },
  };
}

/** Opens or creates a file, and prepares it by `setUp`. `:memory:` is not persistent. */
function openChecked(path: string, options: DatabaseSyncOptions, setUp: (database: DatabaseSync) => void) {
  const database = new DatabaseSync(path, options);
  try {
    setUp(database);
    const check = firstValue(database, "PRAGMA quick_check(1)");
    if (check !== "ok") throw new Error(String(check));
    return database;
  } catch (error) {
    database.close();
    throw error;
  }
}

function firstValue(database: DatabaseSync, query: string): unknown {
  return Object.values(database.prepare(query).get() ?? {})[0];
}

function setUpCatalog(database: DatabaseSync): void {
  database.exec("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA journal_size_limit = 1048576");
  const found = Number(firstValue(database, "PRAGMA user_version"));
  if (found > layout) throw new Error(`written by a newer version (layout ${found})`);
  database.exec(`
    CREATE TABLE IF NOT EXISTS signals (
      input TEXT PRIMARY KEY, metadata TEXT, hash TEXT, saved TEXT, id TEXT
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE IF NOT EXISTS target (one INTEGER PRIMARY KEY CHECK (one = 1), name TEXT NOT NULL) STRICT;
    PRAGMA user_version = ${layout}`);
}

/** How to open a kind of database, and the log messages for its replacement. */
interface DatabaseKind<T> {
  readonly open: (path: string) => T;
  /** Whether the file must be moved aside. */
  readonly isDamage: (error: unknown) => boolean;
  readonly begun: string;
  readonly inMemory: string;
}

const catalogKind: DatabaseKind<CatalogFile> = {
  open: (path) => fileIn(openChecked(path, {}, setUpCatalog)),
  // A full disk does not damage the file, so the next start can use it.
  isDamage: (error) => !isFullDisk(error),
  begun: "the list of signals was damaged; a new one was created",
  inMemory: "the list of signals is kept in memory alone",
};

/** Opens the file at `path`. Moves an unusable file aside, and falls back to memory. */
export function openCatalogFile(path: string, log: Logger): CatalogFile {
  return openDatabase(path, catalogKind, log);
}

/** Returns a replacement after `failed` threw `cause`. */
export function replaceCatalogFile(failed: CatalogFile, path: string, cause: unknown, log: Logger): CatalogFile {
  // The file will be moved aside, so failures to close it do not matter.
  attempt(() => failed[Symbol.dispose]());
  return startOver(path, cause, catalogKind, log);
}

/** Opens the database at `path`. Moves a damaged file aside with a warning, and falls back to memory. */
function openDatabase<T>(path: string, kind: DatabaseKind<T>, log: Logger): T {
  try {
    return kind.open(path);
  } catch (error) {
    return startOver(path, error, kind, log);
  }
}

function startOver<T>(path: string, cause: unknown, kind: DatabaseKind<T>, log: Logger): T {
  try {
    if (!kind.isDamage(cause)) throw cause;
    const aside = `${path}.damaged`;
    renameSync(path, aside);
    for (const suffix of ["-wal", "-shm"]) rmSync(path + suffix, { force: true });
    const opened = kind.open(path);
    log.warn({ reason: reasonOf(cause), aside }, kind.begun);
    return opened;
  } catch (error) {
    const reasons = [...new Set([reasonOf(cause), reasonOf(error)])];
    log.warn({ reason: reasons.join("; ") }, kind.inMemory);
    return kind.open(":memory:");
  }
}

/** SQLITE_FULL, and write errors, which a full disk may also cause. Read errors (266, 522) do not count. */
function isFullDisk(error: unknown): boolean {
  const code = errcodeOf(error) ?? 0;
  const primary = code & 0xff;
  return primary === 13 || (primary === 10 && code !== 266 && code !== 522);
}

function errcodeOf(error: unknown): number | undefined {
  return error instanceof Error && "errcode" in error && typeof error.errcode === "number" ? error.errcode : undefined;
}

function text(value: unknown): string | undefined {
  return typeof value === "string" ? value : undefined;
}

export interface KeptSignal {
  readonly metadata: PartialSignalMetadata | undefined;
  readonly id: SignalId | undefined;
}

/** Reads the agent's signals without locks and without creating files. Undefined: missing or unreadable. */
export function readKeptSignals(path: string, target: string): ReadonlyMap<InputId, KeptSignal> | undefined {
  return attempt(() => {
    if (!existsSync(path)) return undefined;
    // Without a WAL file, no process has the database open. Reading must then not create one, because the agent could
    // not open files of another user.
    const url = pathToFileURL(path);
    if (!existsSync(`${path}-wal`)) url.searchParams.set("immutable", "1");
    using database = new DatabaseSync(url, { readOnly: true });
    const bound = database.prepare("SELECT name FROM target").get()?.["name"];
    const signals = new Map<InputId, KeptSignal>();
    for (const { input, metadata, id } of database.prepare("SELECT input, metadata, id FROM signals").iterate()) {
      if (typeof input !== "string" || !isInputId(input)) continue;
      signals.set(input, {
        metadata: typeof metadata === "string" ? signalAttributes.safeParse(JSON.parse(metadata)).data : undefined,
        // An ID from another service is meaningless.
        id: typeof id === "string" && bound === target ? (id as SignalId) : undefined,
      });
    }
    return signals;
  });
}

export interface PublishedItem {
  readonly input: string;
  readonly itemId: string;
  readonly base: AttributeMap;
}

/** How long to wait for the lock of another process, in milliseconds. Writing a page takes a few. */
const busyMs = 1_000;

export class PublishedItems implements Disposable {
  readonly #database: DatabaseSync;
  readonly #target: string;
  readonly #get: StatementSync;
  readonly #put: StatementSync;

  private constructor(database: DatabaseSync, target: string) {
    this.#database = database;
    this.#target = target;
    this.#get = database.prepare("SELECT item, attributes FROM published WHERE target = ? AND input = ?");
    this.#put = database.prepare(
      `INSERT INTO published (target, input, item, attributes) VALUES (?, ?, ?, ?)
       ON CONFLICT (target, input) DO UPDATE SET item = excluded.item, attributes = excluded.attributes`,
    );
  }

  /** `target`: service and integration. Moves an unusable file aside, and falls back to memory. */
  static open(path: string, target: string, log: Logger): PublishedItems {
    const kind = {
      open: (file: string) => new PublishedItems(openPublished(file), target),
      isDamage: isPublishedDamage,
      begun: "the record of published items was damaged; a new one was created",
      inMemory: "what is published is remembered in memory alone",
    };
    return openDatabase(path, kind, log);
  }

  /** The state last published to this item. Undefined: never published from here. Throws if the file is unreadable. */
  base(input: string, itemId: string | undefined): AttributeMap | undefined {
    const row = this.#get.get(this.#target, input);
    if (row?.["item"] !== itemId || typeof row?.["attributes"] !== "string") return undefined;
    return new Map(Object.entries(z.record(z.string(), z.unknown()).parse(JSON.parse(row["attributes"]))));
  }

  /** Throws if the write fails. */
  put(items: readonly PublishedItem[]): void {
    this.#database.exec("BEGIN IMMEDIATE");
    try {
      for (const { input, itemId, base } of items)
        this.#put.run(this.#target, input, itemId, JSON.stringify(Object.fromEntries(base)));
      this.#database.exec("COMMIT");
    } catch (error) {
      if (this.#database.isTransaction) this.#database.exec("ROLLBACK");
      throw error;
    }
  }

  [Symbol.dispose](): void {
    this.#database.close();
  }
}

function openPublished(path: string): DatabaseSync {
  return openChecked(path, { timeout: busyMs }, (database) => {
    // A rollback journal instead of WAL, since an agent of another user could not open the additional WAL files.
    // Without syncs: a power cut may damage the file, a kill does not.
    database.exec(`
      PRAGMA journal_mode = DELETE;
      PRAGMA synchronous = OFF;
      CREATE TABLE IF NOT EXISTS published (
        target TEXT NOT NULL, input TEXT NOT NULL, item TEXT NOT NULL, attributes TEXT NOT NULL,
        PRIMARY KEY (target, input)
      ) STRICT, WITHOUT ROWID`);
    if (path !== ":memory:") ownAs(dirname(path), path);
  });
}

/** SQLITE_CORRUPT, SQLITE_NOTADB, or a result of `quick_check`. */
function isPublishedDamage(error: unknown): boolean {
  const code = errcodeOf(error);
  return code === undefined ? error instanceof Error && !("code" in error) : code === 11 || code === 26;
}
