// Which tags of a source have several addresses that can come to one Input ID.
import type { z } from "zod";
import type { Ambiguity, Driver, DriverTag, TagId } from "../core/source.ts";
import { placeholders } from "../mapping/input-template.ts";
import type { TagRule } from "../mapping/options.ts";
import type { ConfiguredSource } from "./config.ts";

/** Undefined: each address of the tag has an Input ID of its own, or they may share one. */
export function ambiguityOf(
  driver: Driver,
  tag: Omit<DriverTag<z.ZodObject>, "every">,
  { input, shared }: Pick<TagRule, "input" | "shared">,
): Ambiguity | undefined {
  return shared ? undefined : driver.ambiguity?.(tag, placeholders(input));
}

export function ambiguitiesOf({ driver, tags, rules }: ConfiguredSource): ReadonlyMap<TagId, Ambiguity> {
  const found = new Map<TagId, Ambiguity>();
  for (const [index, rule] of rules.entries()) {
    const tag = tags[index];
    const ambiguity = tag && ambiguityOf(driver, tag, rule);
    if (ambiguity) found.set(index as TagId, ambiguity); // a TagId is the index of its tag
  }
  return found;
}
