// How Node is started for the agent, wherever that is written: the first line of `main.ts` and of the built `main.js`, unit, package and image.

/**
 * A small young generation (7 MB less) and memory given back after the start; no debugger that a signal can call up, no
 * code made of text, and no `__proto__` by which what comes from outside could change what all objects have.
 */
export const nodeFlags: readonly string[] = [
  "--max-semi-space-size=1",
  "--expose-gc",
  "--disable-sigusr1",
  "--disallow-code-generation-from-strings",
  "--disable-proto=delete",
];
