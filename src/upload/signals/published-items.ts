// Persistent record of the last published state of each signal, to distinguish edits of a person from changes by the
// agent.
//
// SQLite file `upload/published.db`, one row per signal. The agent and `tagferry signals publish` may use it
// concurrently. After its loss, all differences count as edits and stay.
import { dirname } from "node:path";
import { DatabaseSync, type StatementSync } from "node:sqlite";
import { z } from "zod";
import type { Logger } from "../../core/runtime.ts";
import { ownAs } from "../../lib/files/atomic-file.ts";
import type { AttributeMap } from "./attribute-map.ts";
import { openDatabase } from "./catalog-file.ts";

export interface PublishedItem {
  readonly input: string;
  readonly itemId: string;
  readonly base: AttributeMap;
}

const attributes = z.record(z.string(), z.unknown());
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
      open: (file: string) => new PublishedItems(openFile(file), target),
      isDamage,
      begun: "the record of published items was damaged; a new one was created",
      inMemory: "what is published is remembered in memory alone",
    };
    return openDatabase(path, kind, log);
  }

  /** The state last published to this item. Undefined: never published from here. Throws if the file is unreadable. */
  base(input: string, itemId: string | undefined): AttributeMap | undefined {
    const row = this.#get.get(this.#target, input);
    if (row?.["item"] !== itemId || typeof row?.["attributes"] !== "string") return undefined;
    return new Map(Object.entries(attributes.parse(JSON.parse(row["attributes"]))));
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

function openFile(path: string): DatabaseSync {
  const database = new DatabaseSync(path, { timeout: busyMs });
  try {
    // A rollback journal instead of WAL, since an agent of another user could not open the additional WAL files.
    // Without syncs: a power cut may damage the file, a kill does not.
    database.exec(`
      PRAGMA journal_mode = DELETE;
      PRAGMA synchronous = OFF;
      CREATE TABLE IF NOT EXISTS published (
        target TEXT NOT NULL, input TEXT NOT NULL, item TEXT NOT NULL, attributes TEXT NOT NULL,
        PRIMARY KEY (target, input)
      ) STRICT, WITHOUT ROWID`);
    const check = Object.values(database.prepare("PRAGMA quick_check(1)").get() ?? {})[0];
    if (check !== "ok") throw new Error(String(check));
    if (path !== ":memory:") ownAs(dirname(path), path);
    return database;
  } catch (error) {
    database.close();
    throw error;
  }
}

/** SQLITE_CORRUPT, SQLITE_NOTADB, or a result of `quick_check`. */
function isDamage(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const code = "errcode" in error ? error.errcode : undefined;
  return code === undefined ? !("code" in error) : code === 11 || code === 26;
}
