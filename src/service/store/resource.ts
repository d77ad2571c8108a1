import { createHash } from "node:crypto";
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
