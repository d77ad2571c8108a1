// Flags of Node for the agent, repeated in `main.ts`, the built `main.js`, the unit, the package and the image.

/**
 * A semi-space of 4 MB suits 10,000 points a second that live for a second; more would cost memory. With a heap limit of
 * 2 GiB or more, V8 copies its built-in functions next to the compiled code: 2.4 MB. The rest disables the SIGUSR1
 * debugger and `__proto__`. With most other flags of V8 Node would compile its own modules at each start: 26 ms of the
 * processor and 4 MB.
 */
export const nodeFlags: readonly string[] = [
  "--max-semi-space-size=4",
  "--max-old-space-size=2000",
  "--disable-sigusr1",
  "--disable-proto=delete",
];
