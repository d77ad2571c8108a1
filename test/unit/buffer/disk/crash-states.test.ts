// The power fails before each call to the disk. Any combination of the blocks, sizes and names that were not synced may
// have reached the disk. Each state must open with all acknowledged points and without a report of damage.
import { expect, test, vi } from "vitest";
import { lookAtCrashStates } from "../../../support/crash-states.ts";

// Hundreds of short runs. The limit allows for a busy machine.
vi.setConfig({ testTimeout: 180_000 });

test.each([0, 1, 2])(
  "every state after a power cut opens without the loss of an acknowledged point (script %i)",
  (variant) => {
    const { states, wrong } = lookAtCrashStates({ variant, statesPerCall: 32 });

    expect(wrong.slice(0, 5)).toEqual([]);
    expect(states).toBeGreaterThan(150);
  },
);
