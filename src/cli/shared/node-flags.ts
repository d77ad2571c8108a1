// Flags of Node for the agent, repeated in `main.ts`, the built `main.js`, the unit, the package and the image.

/**
 * A semi-space of 4 MB suits 10,000 points a second that live for a second; more would cost memory. --expose-gc is for
 * `releaseMemory`. The rest disables the SIGUSR1 debugger, code from strings, and `__proto__`.
 */
export const nodeFlags: readonly string[] = [
  "--max-semi-space-size=4",
  "--expose-gc",
  "--disable-sigusr1",
  "--disallow-code-generation-from-strings",
  "--disable-proto=delete",
];
