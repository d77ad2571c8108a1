// Seed and number of runs of every property test:
//
//   fc.assert(fc.property(…), runs(300));
//
// The short form uses a fixed seed, so that it does not fail for reasons unrelated to a change. The long form uses a
// new seed each time:
//
//   TAGFERRY_RUNS=20 npx vitest run …    20 times as many runs, each property for at most a minute
//   TAGFERRY_PEERS=1 npx vitest run …    the `*.peer` files: as many runs as they name
//   TAGFERRY_SEED=123 …                  repeats the run that failed
//
// A property that fails prints its seed and its shrunk counterexample. The counterexample is committed with the fix, as
// one of `examples`, which are tried before random cases: `runs(300, { examples: [[…]] })`.
import fc, { type Parameters } from "fast-check";

// Uses the full range of a given maximum. Otherwise an array of at most 60 steps has at most 10, which misses many
// orders.
fc.configureGlobal({ defaultSizeToMaxWhenMaxSpecified: true });

const factor = Number(process.env.TAGFERRY_RUNS ?? 1);
const isLong = process.env.TAGFERRY_RUNS !== undefined || process.env.TAGFERRY_PEERS !== undefined;
const longestMs = 60_000;

/** For tests that use `seeded`: include it in the name of the test, so that a failure prints it. */
export const seed = Number(process.env.TAGFERRY_SEED ?? (isLong ? Math.floor(Math.random() * 2 ** 31) : 1));

/** `count` is the number of runs of the short form. */
export function runs<Ts>(count: number, more: Parameters<Ts> = {}): Parameters<Ts> {
  return { seed, numRuns: count * factor, ...(factor > 1 && { interruptAfterTimeLimit: longestMs }), ...more };
}
