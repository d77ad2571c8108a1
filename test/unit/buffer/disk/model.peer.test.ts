// A peer test only because it takes long: the model test with many more runs, half of them on a buffer that overflows.
// A failure's counterexample goes into `buffer-model-failures.ts`.
import fc from "fast-check";
import { expect, test } from "vitest";
import { runSteps, steps } from "../../../support/buffer-model.ts";
import { runs } from "../../../support/property.ts";

const count = Number(process.env.TAGFERRY_MODEL_RUNS ?? 4_000);

test.each([2 ** 30, 18_000])(
  `${count} random orders of what may happen, in a buffer of %i bytes`,
  {
    timeout: 120_000 + count * 60,
  },
  (maxSize) => {
    let done = 0;
    fc.assert(
      fc.property(steps, (all) => {
        runSteps(all, undefined, maxSize);
        done++;
      }),
      runs(count),
    );

    expect(done).toBeGreaterThan(0);
  },
);
