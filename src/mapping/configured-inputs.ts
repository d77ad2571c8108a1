// Which Input IDs a configuration may give rise to, before anything was read. Pure.
import { type InputId, isInputId } from "../core/point.ts";
import type { PartialSignalMetadata } from "../core/signal.ts";
import { literals, placeholders, separators } from "./input-template.ts";
import type { TagRule } from "./options.ts";
import { signalOf } from "./signal.ts";

export interface ConfiguredInputs {
  /** Inputs that stand in the configuration as they are, with what it says of their signals. */
  readonly fixed: ReadonlyMap<InputId, PartialSignalMetadata>;
  /** Whether `input` is one of those, or could come of a template. Says rather yes than no. */
  has(input: string): boolean;
}

/** `rules`: of all tags of all sources. */
export function configuredInputs(rules: Iterable<TagRule>): ConfiguredInputs {
  const fixed = new Map<InputId, PartialSignalMetadata>();
  const templates = new Map<string, readonly string[]>();
  /** Rules share what they say of their signals, and so do 100,000 inputs. */
  const signals = new Map<TagRule["signal"], PartialSignalMetadata>();
  const sharedOf = (signal: TagRule["signal"]) => {
    const known = signals.get(signal) ?? signalOf(signal, {}, {});
    signals.set(signal, known);
    return known;
  };
  for (const { input, signal } of rules) {
    if (placeholders(input).length > 0) templates.set(input, fixedParts(input));
    else if (isInputId(input)) fixed.set(input, sharedOf(signal));
  }
  const parts = [...templates.values()];
  return {
    fixed,
    has(input) {
      if (isInputId(input) && fixed.has(input)) return true;
      // What was too long is a hash and a tail, which tells nothing of its template.
      if (parts.length > 0 && input.length === 128 && /^[0-9a-f]{8}_/.test(input)) return true;
      return parts.some((texts) => stands(texts, input));
    },
  };
}

/** What stands around the names in braces, without the separators that empty captures take along. */
function fixedParts(template: string): readonly string[] {
  const texts = literals(template);
  const parts: string[] = [];
  for (const [index, whole] of texts.entries()) {
    const begins = index > 0 && parts.every((part) => part === "") && isSeparator(whole.charAt(0));
    let text = begins ? whole.slice(1) : whole;
    while (index < texts.length - 1 && isSeparator(text.slice(-1))) text = text.slice(0, -1);
    parts.push(text);
  }
  return parts;
}

function isSeparator(text: string): boolean {
  return text !== "" && separators.includes(text);
}

/** Whether `input` begins with the first text, ends with the last, and has the others between them in their order. */
function stands(texts: readonly string[], input: string): boolean {
  const [first = "", ...others] = texts;
  const last = others.pop() ?? "";
  if (!input.startsWith(first) || !input.endsWith(last)) return false;
  let at = first.length;
  const end = input.length - last.length;
  for (const text of others) {
    const found = input.indexOf(text, at);
    if (found < 0) return false;
    at = found + text.length;
  }
  return at <= end;
}
