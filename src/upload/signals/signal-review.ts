// Goes through all signals of the integration at the service and says where they are not what they are to be.
import { setImmediate } from "node:timers/promises";
import { type InputId, isInputId } from "../../core/point.ts";
import type { PartialSignalMetadata } from "../../core/signal.ts";
import type { MethodCaller } from "../client/method-caller.ts";
import { type AttributeChange, changesOf, signalView } from "./signal-check.ts";
import { type StoredSignal, storedSignals } from "./stored-signals.ts";

/** What is to be there. */
export interface OurSignals {
  /** Of which something is known. */
  inputs(): Iterable<InputId>;
  metadata(input: InputId): PartialSignalMetadata | undefined;
  /** Whether the configuration has it, or may give rise to it. */
  configured(input: string): boolean;
}

/** A signal at the service that is ours. */
export interface ReviewedSignal {
  readonly input: InputId;
  /** As it is to be. */
  readonly signal: PartialSignalMetadata;
  readonly stored: StoredSignal;
  /** Where the service has it otherwise. */
  readonly changes: readonly AttributeChange[];
}

export interface SignalReview {
  /** Ours, and the service does not have them. Empty where it hides Input IDs. */
  readonly missing: readonly InputId[];
  /** Input IDs that the service has and the configuration has not: shown, never touched. */
  readonly unconfigured: readonly string[];
  /** Signals that the service gives without an Input ID: nothing can be said of them. */
  readonly nameless: number;
}

export interface ReviewOptions {
  /** Whether the items are read too. */
  readonly items: boolean;
  /** Given those of ours that a page has, before the next one is read. */
  readonly each: (reviewed: readonly ReviewedSignal[]) => Promise<void>;
}

/** So many are compared before others run. */
const slice = 50;

/** Resolves when all are read. Rejects as `storedSignals` and `each` do. */
export async function reviewSignals(
  caller: MethodCaller,
  ours: OurSignals,
  { items, each }: ReviewOptions,
  signal: AbortSignal,
): Promise<SignalReview> {
  const seen = new Set<string>();
  const unconfigured = new Set<string>();
  let nameless = 0;
  for await (const page of storedSignals(caller, { items }, signal)) {
    const reviewed: ReviewedSignal[] = [];
    for (const [i, stored] of page.entries()) {
      if (i % slice === slice - 1) await setImmediate();
      const { input, attributes } = stored;
      if (input === undefined) nameless++;
      else if (!ours.configured(input)) unconfigured.add(input);
      else if (isInputId(input) && !seen.has(input)) {
        seen.add(input);
        const known = ours.metadata(input);
        const view = known && signalView(input, known);
        if (view) reviewed.push({ input, signal: known, stored, changes: changesOf(view, attributes) });
      }
    }
    await each(reviewed);
  }
  const missing =
    nameless > 0 ? [] : Array.from(ours.inputs()).filter((input) => !seen.has(input) && ours.configured(input));
  return { missing, unconfigured: [...unconfigured].sort(), nameless };
}
