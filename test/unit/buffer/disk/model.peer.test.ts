// With the peers because of its length alone: the model test with many more runs, half of them on a buffer that overflows.
import fc from "fast-check";
import { expect, test } from "vitest";
import { runSteps, steps } from "../../../support/buffer-model.ts";

const runs = Number(process.env.TAGFERRY_MODEL_RUNS ?? 10_000);
/** Another one looks at other orders. A failure prints its own, with the steps: they go to `buffer-model-failures.ts`. */
const seed = Number(process.env.TAGFERRY_MODEL_SEED ?? 20_261_121);

test.each([2 ** 30, 18_000])(
  `${runs} random orders of what may happen, in a buffer of %i bytes`,
  {
    timeout: 120_000 + runs * 60,
  },
  (maxSize) => {
    let done = 0;
    fc.assert(
      fc.property(steps, (all) => {
        runSteps(all, undefined, maxSize);
        done++;
      }),
      { seed, numRuns: runs },
    );

    expect(done).toBe(runs);
  },
);
