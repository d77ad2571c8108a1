// Signals and items: their attributes after a save, and a store that keeps all of them in memory and persists them in SQLite.
// A read-only store reloads the rows that another connection wrote, by their numbers.
import { createHash, randomBytes } from "node:crypto";
import type { DatabaseSync, StatementSync } from "node:sqlite";
import { formatRfcDuration, parseRfcDuration } from "../../wire/rfc-duration.ts";
import type { ItemSaveView, SignalSaveView } from "../../wire/signal-view.ts";

/** The attributes of signals and items, without optional ones. */
export type Attributes = Required<Omit<SignalSaveView, "name">> & { readonly name: string };

interface Resource {
  readonly id: string;
  /** Row number; it also identifies a signal in the tables of points. */
  readonly number: number;
  readonly attributes: Attributes;
  /** Milliseconds since the epoch. */
  readonly createdAt: number;
  readonly updatedAt: number;
}

export interface Signal extends Resource {
  readonly integration: string;
  readonly input: string;
  /** The item that shows its data, by publishing or connecting. */
  readonly item: string | null;
}

export interface ItemRecord extends Resource {
  readonly visible: boolean;
}

/** The attributes after a save: the view with its defaults. Annotations are merged, except those in `removed`. */
export function savedAttributes(
  view: (SignalSaveView | ItemSaveView) & { readonly removed?: readonly string[] },
  name: string,
  before: Attributes | undefined,
): Attributes {
  const annotations = { ...before?.annotations, ...view.annotations };
  for (const key of view.removed ?? []) delete annotations[key];
  return {
    annotations,
    name: view.name ?? name,
    type: view.type,
    description: view.description,
    labels: view.labels,
    engUnit: view.engUnit,
    enumValues: view.enumValues,
    sourceType: view.sourceType,
    sampleInterval: echoed(view.sampleInterval),
    gapDetection: echoed(view.gapDetection),
  };
}

/** Durations are normalised to hours, minutes and seconds. */
function echoed(duration: string | null): string | null {
  const parsed = duration === null ? undefined : parseRfcDuration(duration);
  return parsed === undefined ? null : formatRfcDuration(parsed.micros);
}

/** How long a value of an item is valid, in microseconds: its gap detection. */
export function holdOf({ attributes: { gapDetection } }: ItemRecord): number {
  return (gapDetection === null ? undefined : parseRfcDuration(gapDetection)?.micros) ?? Number.POSITIVE_INFINITY;
}

/** SHA-1 of everything that a save can change. The specification leaves the fields open. */
export function contentHash(attributes: Attributes): string {
  return createHash("sha1")
    .update(JSON.stringify(sorted(attributes)))
    .digest("hex");
}

/** Compares attributes regardless of the order of keys. */
export function sameAttributes(a: Attributes, b: Attributes): boolean {
  return JSON.stringify(sorted(a)) === JSON.stringify(sorted(b));
}

function sorted(value: unknown): unknown {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(
    Object.entries(value)
      .toSorted(([a], [b]) => (a < b ? -1 : 1))
      .map(([key, member]) => [key, sorted(member)]),
  );
}

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

export type ResourceStore = ReturnType<typeof resourceStore>;

export function resourceStore(db: DatabaseSync) {
  const newId = xidGenerator();
  const signals = new Map<string, Signal>();
  const byInput = new Map<string, Map<string, Signal>>();
  const byItem = new Map<string, Map<string, Signal>>();
  const items = new Map<string, ItemRecord>();
  const changed = { signals: new Set<number>(), items: new Set<number>() };
  const insertSignal = db.prepare(
    "INSERT INTO signal (id, integration, input, item, attributes, created, updated) VALUES (?, ?, ?, ?, ?, ?, ?)",
  );
  const updateSignal = db.prepare("UPDATE signal SET item = ?, attributes = ?, updated = ? WHERE number = ?");
  const insertItem = db.prepare("INSERT INTO item (id, visible, attributes, created, updated) VALUES (?, ?, ?, ?, ?)");
  const updateItem = db.prepare("UPDATE item SET visible = ?, attributes = ?, updated = ? WHERE number = ?");
  reload();

  function select(table: keyof typeof tables, which: string): StatementSync {
    return db.prepare(
      `SELECT number, id, attributes, created AS createdAt, updated AS updatedAt, ${tables[table]} FROM ${table} ${which}`,
    );
  }

  function keepItem(item: ItemRecord): ItemRecord {
    items.set(item.id, item);
    changed.items.add(item.number);
    return item;
  }

  function keepSignal(signal: Signal): Signal {
    const before = signals.get(signal.id)?.item ?? null;
    if (before !== null && before !== signal.item) byItem.get(before)?.delete(signal.id);
    signals.set(signal.id, signal);
    changed.signals.add(signal.number);
    inner(byInput, signal.integration).set(signal.input, signal);
    if (signal.item !== null) inner(byItem, signal.item).set(signal.id, signal);
    return signal;
  }

  /** Reloads memory from the file, after a rollback. */
  function reload(): void {
    for (const kept of [signals, byInput, byItem, items]) kept.clear();
    for (const row of select("signal", "ORDER BY number").iterate()) keepSignal(resourceOf<Signal>(row));
    for (const row of select("item", "ORDER BY number").iterate()) keepItem(itemOf(row));
    takeChanges();
  }

  /** Returns and clears the changes since the last call. Call it outside of transactions. */
  function takeChanges(): ResourceChanges {
    const { signals, items } = changed;
    const taken = { signals: [...signals], items: [...items] };
    signals.clear();
    items.clear();
    return taken;
  }

  return {
    reload,
    takeChanges,
    /** Reloads rows that another connection wrote. */
    refresh({ signals, items }: ResourceChanges): void {
      const signal = select("signal", "WHERE number = ?");
      for (const number of signals) keepSignal(resourceOf<Signal>(signal.get(number)));
      const item = select("item", "WHERE number = ?");
      for (const number of items) keepItem(itemOf(item.get(number)));
      takeChanges();
    },
    signal: (id: string): Signal | undefined => signals.get(id),
    signalByInput: (integration: string, input: string): Signal | undefined => byInput.get(integration)?.get(input),
    /** The signals of an integration, by creation. */
    signals: (integration: string): Iterable<Signal> => byInput.get(integration)?.values() ?? [],
    item: (id: string): ItemRecord | undefined => items.get(id),
    /** By creation. */
    items: (): Iterable<ItemRecord> => items.values(),
    /** The signals of an item, by creation. */
    signalsOf(item: string): readonly Signal[] {
      return [...(byItem.get(item)?.values() ?? [])].toSorted((a, b) => a.number - b.number);
    },
    createSignal(integration: string, input: string, attributes: Attributes, nowMs: number): Signal {
      const created = { id: newId(nowMs), attributes, createdAt: nowMs, updatedAt: nowMs };
      const json = JSON.stringify(attributes);
      const row = insertSignal.run(created.id, integration, input, null, json, nowMs, nowMs);
      return keepSignal({ ...created, number: Number(row.lastInsertRowid), integration, input, item: null });
    },
    updateSignal(signal: Signal): void {
      updateSignal.run(signal.item, JSON.stringify(signal.attributes), signal.updatedAt, signal.number);
      keepSignal(signal);
    },
    createItem(attributes: Attributes, visible: boolean, nowMs: number): ItemRecord {
      const created = { id: newId(nowMs), attributes, createdAt: nowMs, updatedAt: nowMs };
      const row = insertItem.run(created.id, visible ? 1 : 0, JSON.stringify(attributes), nowMs, nowMs);
      return keepItem({ ...created, number: Number(row.lastInsertRowid), visible });
    },
    updateItem(item: ItemRecord): void {
      updateItem.run(item.visible ? 1 : 0, JSON.stringify(item.attributes), item.updatedAt, item.number);
      keepItem(item);
    },
  };
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
