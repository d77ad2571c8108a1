// The power fails before every call to the disk; of what was not synced, every combination of blocks, sizes and names may
// have reached it. Each state is opened and must hold what was acknowledged, without a word of damage.
import { expect, test, vi } from "vitest";
import { lookAtCrashStates } from "../../../support/crash-states.ts";

// Hundreds of short runs: a machine that is busy with other things takes its time.
vi.setConfig({ testTimeout: 180_000 });

test.each([0, 1, 2])(
  "every state after a power cut opens without the loss of an acknowledged point (script %i)",
  (variant) => {
    const { states, wrong } = lookAtCrashStates({ variant, statesPerCall: 32 });

    expect(wrong.slice(0, 5)).toEqual([]);
    expect(states).toBeGreaterThan(150);
  },
);
