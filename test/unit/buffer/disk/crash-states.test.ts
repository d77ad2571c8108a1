// The power fails before every call to the disk; of what was not synced, every combination of blocks, sizes and names may
// have reached it. Each state is opened and must hold what was acknowledged, without a word of damage.
import { expect, test } from "vitest";
import { lookAtCrashStates } from "../../../support/crash-states.ts";

test.each([0, 1, 2])("whatever a power cut leaves opens, with nothing acknowledged lost (script %i)", (variant) => {
  const { states, wrong } = lookAtCrashStates({ variant, statesPerCall: 32 });

  expect(wrong).toEqual([]);
  expect(states).toBeGreaterThan(150);
});
