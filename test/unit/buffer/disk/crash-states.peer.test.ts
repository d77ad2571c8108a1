// A peer test only because it takes long. Equal contents of the disk count as one state.
import { expect, test } from "vitest";
import { lookAtCrashStates } from "../../../support/crash-states.ts";

const enough = Number(process.env.TAGFERRY_CRASH_STATES ?? 100_000);

test(`${enough} different states after a power cut all open without the loss of an acknowledged point`, {
  timeout: 300_000 + enough * 20,
}, () => {
  const seen = new Set<string>();
  let variant = 0;
  let inFull = 0;
  let drawn = 0;
  while (seen.size < enough) {
    const result = lookAtCrashStates({ variant: variant++, statesPerCall: 1_024, seen });
    expect(result.wrong.slice(0, 5)).toEqual([]);
    inFull += result.inFull;
    drawn += result.drawn;
  }

  process.stdout.write(
    `${seen.size} different states of ${variant} scripts; before ${inFull} calls all there are, before ${drawn} calls 1,024 draws\n`,
  );
});
