// A peer test only because it takes long: every call × every error × once and for ever × both ways to be full.
import { expect, test } from "vitest";
import { callsOfScript, faultCodes, sweepFaults } from "../../../support/fault-sweep.ts";

const calls = Array.from({ length: callsOfScript() }, (_, i) => i + 1);
const sweeps = faultCodes.flatMap((code) =>
  (["once", "for ever"] as const).flatMap((times) =>
    (["block", "dropOldest"] as const).map((whenFull) => ({ code, times, whenFull })),
  ),
);

test.each(sweeps)(
  `$code $times at each of the ${calls.length} calls of a run ($whenFull)`,
  { timeout: 300_000 },
  (sweep) => {
    const { runs, wrong } = sweepFaults(sweep, calls);

    expect(wrong.slice(0, 5)).toEqual([]);
    expect(runs).toBe(calls.length);
  },
);
