// Flags of Node for the agent. They are repeated in `main.ts`, the built `main.js`, the unit, the package and the
// image.

/**
 * A semi-space of 4 MB suits 10,000 points a second that live for a second; objects that survive two collections wait
 * for a full one. More would cost memory. The other flags allow to release memory after the start, and disable the
 * SIGUSR1 debugger, code from strings, and `__proto__`, through which input could change all objects.
 */
export const nodeFlags: readonly string[] = [
  "--max-semi-space-size=4",
  "--expose-gc",
  "--disable-sigusr1",
  "--disallow-code-generation-from-strings",
  "--disable-proto=delete",
];
