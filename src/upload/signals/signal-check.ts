// Compares what the service has of our signals with what is to be there, so that nothing is lost or changed unnoticed. Pure.
import type { InputId } from "../../core/point.ts";
import type { PartialSignalMetadata } from "../../core/signal.ts";
import { type SignalSaveView, signalSaveView } from "../../wire/signal-view.ts";
import { flatten, sameValue } from "./attribute-map.ts";
import type { StoredAttributes } from "./stored-signals.ts";

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
