// Signals and items: in memory for finding them, in SQLite for keeping them. Writes go to both, within a transaction.
import type { DatabaseSync, StatementSync } from "node:sqlite";
import type { Attributes, ItemRecord, Signal } from "./resource.ts";
import { xidGenerator } from "./xid.ts";

export const resourceTables = `
  CREATE TABLE IF NOT EXISTS signal (
    number INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    integration TEXT NOT NULL,
    input TEXT NOT NULL,
    item TEXT,
    attributes TEXT NOT NULL,
    created INTEGER NOT NULL,
    updated INTEGER NOT NULL,
    UNIQUE (integration, input)
  );
  CREATE TABLE IF NOT EXISTS item (
    number INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    visible INTEGER NOT NULL,
    attributes TEXT NOT NULL,
    created INTEGER NOT NULL,
    updated INTEGER NOT NULL
  );
`;

export class ResourceStore {
  readonly #db: DatabaseSync;
  readonly #newId = xidGenerator();
  readonly #insertSignal: StatementSync;
  readonly #updateSignal: StatementSync;
  readonly #insertItem: StatementSync;
  readonly #updateItem: StatementSync;
  readonly #signals = new Map<string, Signal>();
  readonly #byInput = new Map<string, Map<string, Signal>>();
  readonly #byItem = new Map<string, Map<string, Signal>>();
  readonly #items = new Map<string, ItemRecord>();

  constructor(db: DatabaseSync) {
    this.#db = db;
    this.#insertSignal = db.prepare(
      "INSERT INTO signal (id, integration, input, item, attributes, created, updated) VALUES (?, ?, ?, ?, ?, ?, ?)",
    );
    this.#updateSignal = db.prepare("UPDATE signal SET item = ?, attributes = ?, updated = ? WHERE number = ?");
    this.#insertItem = db.prepare(
      "INSERT INTO item (id, visible, attributes, created, updated) VALUES (?, ?, ?, ?, ?)",
    );
    this.#updateItem = db.prepare("UPDATE item SET visible = ?, attributes = ?, updated = ? WHERE number = ?");
    this.reload();
  }

  /** Forgets what memory holds in favour of what the file holds: after a transaction that was rolled back. */
  reload(): void {
    this.#signals.clear();
    this.#byInput.clear();
    this.#byItem.clear();
    this.#items.clear();
    for (const row of this.#db.prepare("SELECT * FROM signal ORDER BY id").iterate()) this.#keepSignal(signalOf(row));
    for (const row of this.#db.prepare("SELECT * FROM item ORDER BY id").iterate()) {
      const item = itemOf(row);
      this.#items.set(item.id, item);
    }
  }

  signal(id: string): Signal | undefined {
    return this.#signals.get(id);
  }

  signalByInput(integration: string, input: string): Signal | undefined {
    return this.#byInput.get(integration)?.get(input);
  }

  /** Of one integration, by creation. */
  signals(integration: string): Iterable<Signal> {
    return this.#byInput.get(integration)?.values() ?? [];
  }

  item(id: string): ItemRecord | undefined {
    return this.#items.get(id);
  }

  /** By creation. */
  items(): Iterable<ItemRecord> {
    return this.#items.values();
  }

  /** Signals whose data an item shows, by creation. */
  signalsOf(item: string): readonly Signal[] {
    return [...(this.#byItem.get(item)?.values() ?? [])].toSorted((a, b) => a.number - b.number);
  }

  createSignal(integration: string, input: string, attributes: Attributes, nowMs: number): Signal {
    const id = this.#newId(Math.floor(nowMs / 1_000));
    const { lastInsertRowid } = this.#insertSignal.run(
      id,
      integration,
      input,
      null,
      JSON.stringify(attributes),
      nowMs,
      nowMs,
    );
    return this.#keepSignal({
      id,
      number: Number(lastInsertRowid),
      integration,
      input,
      item: null,
      attributes,
      createdAt: nowMs,
      updatedAt: nowMs,
    });
  }

  updateSignal(signal: Signal): void {
    this.#updateSignal.run(signal.item, JSON.stringify(signal.attributes), signal.updatedAt, signal.number);
    this.#keepSignal(signal);
  }

  createItem(attributes: Attributes, visible: boolean, nowMs: number): ItemRecord {
    const id = this.#newId(Math.floor(nowMs / 1_000));
    const { lastInsertRowid } = this.#insertItem.run(id, visible ? 1 : 0, JSON.stringify(attributes), nowMs, nowMs);
    const item: ItemRecord = {
      id,
      number: Number(lastInsertRowid),
      visible,
      attributes,
      createdAt: nowMs,
      updatedAt: nowMs,
    };
    this.#items.set(id, item);
    return item;
  }

  updateItem(item: ItemRecord): void {
    this.#updateItem.run(item.visible ? 1 : 0, JSON.stringify(item.attributes), item.updatedAt, item.number);
    this.#items.set(item.id, item);
  }

  #keepSignal(signal: Signal): Signal {
    this.#signals.set(signal.id, signal);
    inner(this.#byInput, signal.integration).set(signal.input, signal);
    if (signal.item !== null) inner(this.#byItem, signal.item).set(signal.id, signal);
    return signal;
  }
}

function inner<T>(outer: Map<string, Map<string, T>>, key: string): Map<string, T> {
  let map = outer.get(key);
  if (!map) outer.set(key, (map = new Map()));
  return map;
}

// Rows of our own tables: what was written is what is read.
interface Row {
  readonly number: number;
  readonly id: string;
  readonly integration: string;
  readonly input: string;
  readonly item: string | null;
  readonly visible: number;
  readonly attributes: string;
  readonly created: number;
  readonly updated: number;
}

function signalOf(row: unknown): Signal {
  const { number, id, integration, input, item, attributes, created, updated } = row as Row;
  return {
    number,
    id,
    integration,
    input,
    item,
    attributes: attributesOf(attributes),
    createdAt: created,
    updatedAt: updated,
  };
}

function itemOf(row: unknown): ItemRecord {
  const { number, id, visible, attributes, created, updated } = row as Row;
  return {
    number,
    id,
    visible: visible === 1,
    attributes: attributesOf(attributes),
    createdAt: created,
    updatedAt: updated,
  };
}

function attributesOf(text: string): Attributes {
  return JSON.parse(text) as Attributes;
}
