// The fields of signals and items that filters and sorting may name.
import type { ItemRecord, Signal } from "../store/resource.ts";

/** What a field holds. Times are milliseconds since the epoch, and RFC 3339 in filters. */
export type FieldValue = string | number | boolean | null | readonly string[];
type FieldKind = "text" | "time" | "flag";

export interface Field<Resource> {
  readonly kind: FieldKind;
  read(resource: Resource): FieldValue;
}

/** The field a path names, undefined when there is none. Paths are split at the first dot: label keys may hold more. */
export type FieldTable<Resource> = (path: string) => Field<Resource> | undefined;

type Readers<Resource> = Readonly<Record<string, Field<Resource>>>;

const text = <Resource>(read: (resource: Resource) => FieldValue): Field<Resource> => ({ kind: "text", read });
const time = <Resource>(read: (resource: Resource) => number): Field<Resource> => ({ kind: "time", read });

const shared: Readers<Signal | ItemRecord> = {
  id: text(({ id }) => id),
  name: text(({ attributes }) => attributes.name),
  description: text(({ attributes }) => attributes.description),
  type: text(({ attributes }) => attributes.type),
  valueType: text(({ attributes }) => attributes.type),
  sourceType: text(({ attributes }) => attributes.sourceType),
  engUnit: text(({ attributes }) => attributes.engUnit),
  sampleInterval: text(({ attributes }) => attributes.sampleInterval),
  gapDetection: text(({ attributes }) => attributes.gapDetection),
  createdAt: time(({ createdAt }) => createdAt),
  updatedAt: time(({ updatedAt }) => updatedAt),
};

const ofSignals: Readers<Signal> = {
  ...shared,
  input: text(({ input }) => input),
  inputId: text(({ input }) => input),
  item: text(({ item }) => item),
  integration: text(({ integration }) => integration),
};

const ofItems: Readers<ItemRecord> = {
  ...shared,
  visible: { kind: "flag", read: ({ visible }) => visible },
};

export const signalFields: FieldTable<Signal> = (path) => keyed(path) ?? named(ofSignals, path);
export const itemFields: FieldTable<ItemRecord> = (path) => keyed(path) ?? named(ofItems, path);

function named<Resource>(readers: Readers<Resource>, path: string): Field<Resource> | undefined {
  return Object.hasOwn(readers, path) ? readers[path] : undefined;
}

/** `labels.<key>` and `annotations.<key>`. */
function keyed(path: string): Field<Signal | ItemRecord> | undefined {
  const dot = path.indexOf(".");
  if (dot < 0 || dot === path.length - 1) return undefined;
  const key = path.slice(dot + 1);
  switch (path.slice(0, dot)) {
    case "labels":
      return text(({ attributes }) => own(attributes.labels, key) ?? null);
    case "annotations":
      return text(({ attributes }) => own(attributes.annotations, key) ?? null);
    default:
      return undefined;
  }
}

function own<T>(map: Readonly<Record<string, T>>, key: string): T | undefined {
  return Object.hasOwn(map, key) ? map[key] : undefined;
}
