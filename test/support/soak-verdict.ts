// What must not be in the end of a soak: values that are missing without a word, values stored twice, errors in the log
// that nothing explains. Pure.
import type { Gap } from "../../src/agent/gaps/gap.ts";
import type { Stored } from "../../src/demo/comparison.ts";
import { told, verdictOf } from "./gap-verdict.ts";
import type { SoakPlant } from "./soak-plant.ts";

export interface Findings {
  /** Acknowledged by the broker and not in the service. */
  readonly missing: readonly string[];
  /** Of MQTT, in the service under two times. */
  readonly twice: readonly string[];
  /** Read from a device, neither in the service nor in the gap record. */
  readonly unexplained: readonly string[];
  /** How many of them the gap record explains. */
  readonly explained: number;
  /** Lines of level 50 and more that no fault explains. */
  readonly errors: readonly string[];
}

/** What a fault here makes the agent log as an error. */
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
  const { missing, unexplained } = verdictOf(plant.polled, stored, gaps);
  return {
    // No gap explains these.
    missing: verdictOf(plant.acknowledged, stored, []).unexplained,
    twice: plant.acknowledged.filter(({ input, value }) => (stored.get(input)?.get(value)?.length ?? 0) > 1).map(told),
    unexplained,
    explained: missing.length - unexplained.length,
    errors: found.errors
      .filter(({ msg }) => !expectedErrors.some((known) => known.test(String(msg))))
      .map((line) => JSON.stringify(line)),
  };
}
