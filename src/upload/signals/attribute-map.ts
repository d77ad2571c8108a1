// The attributes of a signal or item laid flat, so that they can be compared and merged one by one. Pure.
//
// `labels: { site: ["north"] }` becomes `labels.site`: a label that a person adds at the service is an attribute of its
// own, not a change of all labels. Lengths of time are compared as lengths: `P1D` is `PT24H`.
import { formatRfcDuration, parseRfcDuration } from "../../wire/rfc-duration.ts";
import { canonicalJson } from "./metadata-hash.ts";

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
