// Compares what the service has of our signals with what was saved there, so that nothing is lost or changed unnoticed.
import type { InputId } from "../core/point.ts";
import { parseRfcDuration } from "../wire/rfc-duration.ts";
import { signalSaveView } from "../wire/signal-view.ts";
import type { CatalogEntry } from "./catalog.ts";
import { canonicalJson } from "./metadata-hash.ts";
import type { StoredAttributes, StoredSignal } from "./stored-signals.ts";

export interface AttributeChange {
  readonly attribute: string;
  readonly ours: unknown;
  readonly theirs: unknown;
}

export interface SignalCheck {
  /** Saved once, and the service has them no longer. */
  readonly lost: readonly InputId[];
  /** Saved once, and different now: somebody changed them on the other side. */
  readonly changed: readonly { readonly input: InputId; readonly changes: readonly AttributeChange[] }[];
  /** Input IDs that the service has and we do not configure: shown, never touched. */
  readonly unknown: readonly string[];
  /** Signals that the service gives without an Input ID: nothing can be said of them. */
  readonly nameless: number;
}

const durations = new Set(["sampleInterval", "gapDetection"]);

/** `configured`: whether the configuration still has an input. What was not saved yet is neither lost nor changed. */
export function checkSignals(
  entries: Iterable<CatalogEntry>,
  stored: readonly StoredSignal[],
  configured: (input: string) => boolean,
): SignalCheck {
  const byInput = new Map(stored.flatMap((each) => (each.input === undefined ? [] : [[each.input, each] as const])));
  const nameless = stored.filter(({ input }) => input === undefined).length;
  const lost: InputId[] = [];
  const changed: { input: InputId; changes: readonly AttributeChange[] }[] = [];
  for (const { input, saved, signal } of entries) {
    if (!saved || signal === undefined) continue;
    const theirs = byInput.get(input);
    if (theirs) {
      const changes = changesOf({ ...signal, name: signal.name ?? input }, theirs.attributes);
      if (changes.length > 0) changed.push({ input, changes });
    } else if (nameless === 0) lost.push(input);
  }
  return { lost, changed, unknown: [...byInput.keys()].filter((input) => !configured(input)).sort(), nameless };
}

/** Attributes in which `theirs` is not what saving `ours` makes of it. */
function changesOf(ours: object, theirs: StoredAttributes): AttributeChange[] {
  const view = signalSaveView.safeParse(ours);
  // Refused before it was sent, and shown as that.
  if (!view.success) return [];
  const there: Readonly<Record<string, unknown>> = theirs;
  return Object.entries(view.data).flatMap(([attribute, own]) => {
    const other = there[attribute];
    // What the service does not show cannot be compared.
    if (other === undefined || sameAttribute(attribute, own, other)) return [];
    return [{ attribute, ours: own, theirs: other }];
  });
}

function sameAttribute(attribute: string, ours: unknown, theirs: unknown): boolean {
  if (durations.has(attribute)) return lengthOf(ours) === lengthOf(theirs);
  // Annotations are merged: others may have added their own.
  if (attribute === "annotations")
    return canonicalJson({ ...asObject(theirs), ...asObject(ours) }) === canonicalJson(theirs);
  return canonicalJson(ours) === canonicalJson(theirs);
}

function asObject(value: unknown): object {
  return typeof value === "object" && value !== null ? value : {};
}

function lengthOf(duration: unknown): number | undefined {
  return typeof duration === "string" ? parseRfcDuration(duration)?.micros : undefined;
}
