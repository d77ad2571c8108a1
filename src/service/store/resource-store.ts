// Signals and items in memory, persisted in SQLite. A read-only store follows by the numbers of changed rows.
import { randomBytes } from "node:crypto";
import type { DatabaseSync, StatementSync } from "node:sqlite";
import type { Attributes, ItemRecord, Signal } from "./resource.ts";

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

/** Numbers of the rows that transactions wrote. */
export interface ResourceChanges {
  readonly signals: readonly number[];
  readonly items: readonly number[];
}

/** Each table with its specific columns. */
const tables = { signal: "integration, input, item", item: "visible" } as const;

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
  readonly #changed = { signals: new Set<number>(), items: new Set<number>() };

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

  /** Reloads memory from the file, after a rollback. */
  reload(): void {
    for (const kept of [this.#signals, this.#byInput, this.#byItem, this.#items]) kept.clear();
    for (const row of this.#select("signal", "ORDER BY number").iterate()) this.#keepSignal(resourceOf<Signal>(row));
    for (const row of this.#select("item", "ORDER BY number").iterate()) this.#keepItem(itemOf(row));
    this.takeChanges();
  }

  /** Returns and clears the changes since the last call. Call it outside of transactions. */
  takeChanges(): ResourceChanges {
    const { signals, items } = this.#changed;
    const taken = { signals: [...signals], items: [...items] };
    signals.clear();
    items.clear();
    return taken;
  }

  /** Reloads rows that another connection wrote. */
  refresh({ signals, items }: ResourceChanges): void {
    const signal = this.#select("signal", "WHERE number = ?");
    for (const number of signals) this.#keepSignal(resourceOf<Signal>(signal.get(number)));
    const item = this.#select("item", "WHERE number = ?");
    for (const number of items) this.#keepItem(itemOf(item.get(number)));
    this.takeChanges();
  }

  signal(id: string): Signal | undefined {
    return this.#signals.get(id);
  }

  signalByInput(integration: string, input: string): Signal | undefined {
    return this.#byInput.get(integration)?.get(input);
  }

  /** The signals of an integration, by creation. */
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

  /** The signals of an item, by creation. */
  signalsOf(item: string): readonly Signal[] {
    return [...(this.#byItem.get(item)?.values() ?? [])].toSorted((a, b) => a.number - b.number);
  }

  createSignal(integration: string, input: string, attributes: Attributes, nowMs: number): Signal {
    const created = { id: this.#newId(nowMs), attributes, createdAt: nowMs, updatedAt: nowMs };
    const json = JSON.stringify(attributes);
    const row = this.#insertSignal.run(created.id, integration, input, null, json, nowMs, nowMs);
    return this.#keepSignal({ ...created, number: Number(row.lastInsertRowid), integration, input, item: null });
  }

  updateSignal(signal: Signal): void {
    this.#updateSignal.run(signal.item, JSON.stringify(signal.attributes), signal.updatedAt, signal.number);
    this.#keepSignal(signal);
  }

  createItem(attributes: Attributes, visible: boolean, nowMs: number): ItemRecord {
    const created = { id: this.#newId(nowMs), attributes, createdAt: nowMs, updatedAt: nowMs };
    const row = this.#insertItem.run(created.id, visible ? 1 : 0, JSON.stringify(attributes), nowMs, nowMs);
    return this.#keepItem({ ...created, number: Number(row.lastInsertRowid), visible });
  }

  updateItem(item: ItemRecord): void {
    this.#updateItem.run(item.visible ? 1 : 0, JSON.stringify(item.attributes), item.updatedAt, item.number);
    this.#keepItem(item);
  }

  #select(table: keyof typeof tables, which: string): StatementSync {
    return this.#db.prepare(
      `SELECT number, id, attributes, created AS createdAt, updated AS updatedAt, ${tables[table]} FROM ${table} ${which}`,
    );
  }

  #keepItem(item: ItemRecord): ItemRecord {
    this.#items.set(item.id, item);
    this.#changed.items.add(item.number);
    return item;
  }

  #keepSignal(signal: Signal): Signal {
    const before = this.#signals.get(signal.id)?.item ?? null;
    if (before !== null && before !== signal.item) this.#byItem.get(before)?.delete(signal.id);
    this.#signals.set(signal.id, signal);
    this.#changed.signals.add(signal.number);
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

/** A row of our own tables, which matches the type. */
function resourceOf<Resource extends Signal | ItemRecord>(row: unknown): Resource {
  const stored = row as Omit<Resource, "attributes"> & { readonly attributes: string };
  return { ...stored, attributes: JSON.parse(stored.attributes) } as Resource;
}

/** SQLite stores booleans as numbers. */
function itemOf(row: unknown): ItemRecord {
  const item = resourceOf<ItemRecord>(row);
  return { ...item, visible: Boolean(item.visible) };
}

/** Generates unique identifiers that sort by creation: seconds, machine and counter, in base32hex. */
function xidGenerator(): (nowMs: number) => string {
  const machine = randomBytes(5);
  let counter = randomBytes(3).readUIntBE(0, 3);
  return (nowMs) => {
    const bytes = Buffer.alloc(12);
    bytes.writeUInt32BE(Math.floor(nowMs / 1_000) >>> 0, 0);
    machine.copy(bytes, 4);
    counter = (counter + 1) & 0xffffff;
    bytes.writeUIntBE(counter, 9, 3);
    // 96 bits need 20 base-32 digits, so four zero bits are appended.
    return (BigInt(`0x${bytes.toString("hex")}`) << 4n).toString(32).padStart(20, "0");
  };
}
