// Which signals are fit to be published: what the configuration asks to be said of them. Pure.
import { z } from "zod";
import type { PartialSignalMetadata } from "../../core/signal.ts";
import { keyPattern } from "../../wire/signal-view.ts";

const plain = ["name", "description", "engUnit", "labels", "sampleInterval", "gapDetection"] as const;

/** `name`, `engUnit`, `labels`, `labels.site` … */
export const qualityRule = z
  .string()
  .refine(
    (text) => plain.some((name) => name === text) || (text.startsWith("labels.") && keyPattern.test(text.slice(7))),
    { error: `must be ${plain.join(", ")} or labels.<key>` },
  );

/** The rules that `signal` does not meet. Names of states take the place of a unit where it is an enumeration. */
export function unmetRules(signal: PartialSignalMetadata, rules: readonly string[]): readonly string[] {
  return rules.flatMap((rule) => {
    const wanted = rule === "engUnit" && signal.type === "enum" ? "enumValues" : rule;
    return isPresent(signal, wanted) ? [] : [wanted];
  });
}

function isPresent(signal: PartialSignalMetadata, rule: string): boolean {
  if (rule.startsWith("labels.")) return (signal.labels?.[rule.slice(7)] ?? []).some((text) => text !== "");
  const value = Object.entries(signal).find(([name]) => name === rule)?.[1];
  if (typeof value === "string") return value.trim() !== "";
  return typeof value === "object" && value !== null && Object.keys(value).length > 0;
}
