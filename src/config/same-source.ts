// Whether a source is the same in two configurations, so that a reload leaves it running.
import { Secret } from "../core/secret.ts";
import type { Config, ConfiguredSource } from "./config.ts";

/** Options, tags and rules of both say the same, secrets included. Names are not compared. */
export function sameSource(a: ConfiguredSource, b: ConfiguredSource): boolean {
  return (
    a.driver.type === b.driver.type && same(a.options, b.options) && same(a.tags, b.tags) && same(a.rules, b.rules)
  );
}

/** Sections whose change takes effect with a restart only, since everything stands on them. */
export function changedSections(a: Config, b: Config): readonly string[] {
  const sections = ["agent", "service", "buffer", "http", "log"] as const;
  return sections.filter((section) => !same(a[section], b[section]));
}

function same(a: unknown, b: unknown): boolean {
  if (Object.is(a, b)) return true;
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return false;
  if (a instanceof Secret || b instanceof Secret)
    return a instanceof Secret && b instanceof Secret && a.reveal() === b.reveal();
  if (a instanceof RegExp && b instanceof RegExp) return String(a) === String(b);
  if (Array.isArray(a) !== Array.isArray(b)) return false;
  const [left, right] = [Object.entries(a), new Map(Object.entries(b))];
  return left.length === right.size && left.every(([key, value]) => right.has(key) && same(value, right.get(key)));
}
