// The failures that a soak test looks for: unexplained missing values, values stored twice, unexplained errors in the
// log.
// Pure.
import type { Gap } from "../../src/agent/gaps/gap.ts";
import type { Stored } from "../../src/demo/comparison.ts";
import { labelOf, reconcile } from "./gap-reconciliation.ts";
import type { SoakPlant } from "./soak-plant.ts";

export interface Findings {
  /** Values that the broker acknowledged and the service does not have. */
  readonly missing: readonly string[];
  /** MQTT values that the service has under two times. */
  readonly twice: readonly string[];
  /** Values of a device that are neither in the service nor in the gap record. */
  readonly unexplained: readonly string[];
  /** The number of missing values that the gap record explains. */
  readonly explained: number;
  /** Log lines of level 50 and above that no fault explains. */
  readonly errors: readonly string[];
}

/** Errors that the faults cause in the agent's log. */
const expectedErrors: readonly RegExp[] = [
  // A full disk.
  /^points cannot be stored, reading is held back$/,
  /^refused points cannot be written to disk/,
];

export function findings(found: {
  readonly plant: Pick<SoakPlant, "acknowledged" | "polled">;
  readonly stored: Stored;
  readonly gaps: readonly Gap[];
  readonly errors: readonly Readonly<Record<string, unknown>>[];
}): Findings {
  const { plant, stored, gaps } = found;
  const { missing, unexplained } = reconcile(plant.polled, stored, gaps);
  return {
    // A gap does not explain an acknowledged message.
    missing: reconcile(plant.acknowledged, stored, []).unexplained,
    twice: plant.acknowledged
      .filter(({ input, value }) => (stored.get(input)?.get(value)?.length ?? 0) > 1)
      .map(labelOf),
    unexplained,
    explained: missing.length - unexplained.length,
    errors: found.errors
      .filter(({ msg }) => !expectedErrors.some((known) => known.test(String(msg))))
      .map((line) => JSON.stringify(line)),
  };
}
