// How Node is started for the agent, wherever that is written: the first line of `main.ts`, unit, package and image.

/**
 * A small young generation (7 MB less), memory given back after the start, and no debugger that a signal can call up
 * (reliability.md S5).
 */
export const nodeFlags: readonly string[] = ["--max-semi-space-size=1", "--expose-gc", "--disable-sigusr1"];
