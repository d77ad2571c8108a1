// The attributes of a signal or item laid flat, so that they can be compared and merged one by one. Pure.
//
// `labels: { site: ["north"] }` becomes `labels.site`: a label that a person adds at the service is an attribute of its
// own, not a change of all labels. Lengths of time are compared as lengths: `P1D` is `PT24H`.
import { hash } from "node:crypto";
import type { z } from "zod";
import type { InputId } from "../../core/point.ts";
import type { PartialSignalMetadata } from "../../core/signal.ts";
import { formatRfcDuration, parseRfcDuration } from "../../wire/rfc-duration.ts";
import { type SignalSaveView, type signalAttributes, signalSaveView } from "../../wire/signal-view.ts";

/** Attributes as the service gives them; those it gives in a form that is not known are left out. */
export type StoredAttributes = z.output<typeof signalAttributes>;

/** Path of an attribute → its value. A value is JSON and never undefined. */
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

/** A length of time as the service echoes it. */
function asServed(value: unknown): unknown {
  const parsed = typeof value === "string" ? parseRfcDuration(value) : undefined;
  return parsed?.months === 0 ? formatRfcDuration(parsed.micros) : value;
}

function asObject(value: unknown): object {
  return typeof value === "object" && value !== null ? value : {};
}

/** JSON with the members of every object in order: one text for the same metadata. */
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
  /** `engUnit`, `labels.site`. */
  readonly attribute: string;
  /** Undefined: there is none. */
  readonly ours: unknown;
  readonly theirs: unknown;
}

/** What is saved for `input`, with every default; undefined where that is not what the interface allows. */
export function signalView(input: InputId, signal: PartialSignalMetadata): SignalSaveView | undefined {
  return signalSaveView.safeParse({ ...signal, name: signal.name ?? input }).data;
}

/**
 * Attributes in which `theirs` is not what saving `ours` makes of it. What the service does not show cannot be compared.
 * Annotations are merged there: others may have added their own.
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
