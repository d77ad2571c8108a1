// Flat attributes of a signal or item, for comparing and merging them individually.
//
// `labels: { site: ["north"] }` becomes `labels.site`. A label that a person adds at the service is thus one attribute,
// not a change of all labels. Durations are compared by length: `P1D` equals `PT24H`.
import { hash } from "node:crypto";
import type { z } from "zod";
import type { InputId } from "../../core/point.ts";
import type { PartialSignalMetadata } from "../../core/signal.ts";
import { formatRfcDuration, parseRfcDuration } from "../../wire/rfc-duration.ts";
import { type SignalSaveView, type signalAttributes, signalSaveView } from "../../wire/signal-view.ts";

/** Attributes returned by the service, without those in an unknown form. */
export type StoredAttributes = z.output<typeof signalAttributes>;

/** Path of an attribute → JSON value, never undefined. */
export type AttributeMap = ReadonlyMap<string, unknown>;

const maps = ["labels", "annotations", "enumValues"];
const durations = ["sampleInterval", "gapDetection"];

export function flatten(view: object): AttributeMap {
  const flat = new Map<string, unknown>();
  for (const [name, value] of Object.entries(view)) {
    if (value === undefined) continue;
    if (maps.includes(name)) {
      for (const [key, member] of Object.entries(asObject(value))) flat.set(`${name}.${key}`, member);
    } else flat.set(name, durations.includes(name) ? asServed(value) : value);
  }
  return flat;
}

export function unflatten(flat: AttributeMap): Record<string, unknown> {
  const view: Record<string, unknown> = {};
  const members: Record<string, Record<string, unknown>> = { labels: {}, annotations: {}, enumValues: {} };
  for (const [path, value] of flat) {
    const dot = path.indexOf(".");
    const of = dot < 0 ? undefined : members[path.slice(0, dot)];
    if (of) of[path.slice(dot + 1)] = value;
    else view[path] = value;
  }
  return { ...view, ...members };
}

export function sameValue(a: unknown, b: unknown): boolean {
  return a === b || (a !== undefined && b !== undefined && canonicalJson(a) === canonicalJson(b));
}

/** A duration in the format of the service. */
function asServed(value: unknown): unknown {
  const parsed = typeof value === "string" ? parseRfcDuration(value) : undefined;
  return parsed?.months === 0 ? formatRfcDuration(parsed.micros) : value;
}

function asObject(value: unknown): object {
  return typeof value === "object" && value !== null ? value : {};
}

/** JSON with sorted members, so that equal metadata has equal text. */
export function canonicalJson(value: unknown): string {
  return JSON.stringify(value, (_key, member: unknown) =>
    typeof member === "object" && member !== null && !Array.isArray(member)
      ? Object.fromEntries(Object.entries(member).sort(([a], [b]) => (a < b ? -1 : 1)))
      : member,
  );
}

export function hashOf(canonical: string): string {
  return hash("sha1", canonical, "base64url");
}

export interface AttributeChange {
  /** Examples: `engUnit`, `labels.site`. */
  readonly attribute: string;
  readonly ours: unknown;
  readonly theirs: unknown;
}

/** The save view of `input` with all defaults. Undefined: invalid for the interface. */
export function signalView(input: InputId, signal: PartialSignalMetadata): SignalSaveView | undefined {
  return signalSaveView.safeParse({ ...signal, name: signal.name ?? input }).data;
}

/**
 * Attributes of `theirs` that differ from the result of saving `ours`. Attributes that the service does not return are
 * skipped. The service merges annotations, so additional ones of other clients do not count.
 */
export function changesOf(ours: SignalSaveView, theirs: StoredAttributes): readonly AttributeChange[] {
  const own = flatten(ours);
  const there = flatten(theirs);
  const shown = new Set(Object.keys(theirs));
  const changes: AttributeChange[] = [];
  for (const attribute of [...new Set([...own.keys(), ...there.keys()])].sort()) {
    const [name = attribute] = attribute.split(".", 1);
    if (!shown.has(name) || (name === "annotations" && !own.has(attribute))) continue;
    const [a, b] = [own.get(attribute), there.get(attribute)];
    if (!sameValue(a, b)) changes.push({ attribute, ours: a, theirs: b });
  }
  return changes;
}
