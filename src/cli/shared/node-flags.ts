// How Node is started for the agent, wherever that is written: the first line of `main.ts` and of the built `main.js`, unit, package and image.

/**
 * A young generation that grows to 4 MB where much survives: 10,000 points a second live for a second, and what outlives
 * two of its collections waits for one of the whole heap. No larger, which takes memory. Memory is given back after the
 * start; there is no debugger that a signal can call up, no code made of text, and no `__proto__` by which what comes from
 * outside could change what all objects have.
 */
export const nodeFlags: readonly string[] = [
  "--max-semi-space-size=4",
  "--expose-gc",
  "--disable-sigusr1",
  "--disallow-code-generation-from-strings",
  "--disable-proto=delete",
];
