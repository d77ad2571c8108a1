// What is known of a signal: the configuration before the device. Pure.
import type { PartialSignalMetadata } from "../core/signal.ts";
import type { Captures } from "../core/source.ts";
import { fillText } from "./input-template.ts";
import type { TagRule } from "./options.ts";

/** Attributes of the configuration, their names in braces filled, over those of the device. */
export function signalOf(
  rule: TagRule["signal"],
  device: PartialSignalMetadata,
  captures: Captures,
): PartialSignalMetadata {
  const signal: Record<string, unknown> = {};
  for (const [key, value] of Object.entries(device)) if (value !== undefined) signal[key] = value;
  for (const [key, value] of Object.entries(rule)) if (value !== undefined) signal[key] = filled(value, captures);
  return signal;
}

function filled(value: unknown, captures: Captures): unknown {
  if (typeof value === "string") return value.includes("{") ? fillText(value, captures) : value;
  if (Array.isArray(value)) return value.map((item) => filled(item, captures));
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, filled(item, captures)]));
}

/** Words of an enumeration and their numbers; undefined where the signal is none. */
export function statesOf({ type, enumValues }: PartialSignalMetadata): ReadonlyMap<string, number> | undefined {
  if (type !== "enum") return undefined;
  return new Map(Object.entries(enumValues ?? {}).map(([state, word]) => [word, Number(state)]));
}

/** Whether the two say the same. */
export function sameSignal(a: PartialSignalMetadata, b: PartialSignalMetadata): boolean {
  return JSON.stringify(a) === JSON.stringify(b);
}
