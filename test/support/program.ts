// The program that a test starts: the built one in the end-to-end tests, the sources elsewhere.
import { createRequire } from "node:module";
import { dirname, join, resolve } from "node:path";
import type * as Program from "../../src/cli/program.ts";

const built = process.env["TAGFERRY_PROGRAM"];

/** The file that Node runs. */
export const program = built ?? resolve(import.meta.dirname, "../../src/cli/main.ts");

/** The commands, for tests that run them in their own process. */
export async function commandsOfProgram(): Promise<Pick<typeof Program, "runCommand">> {
  if (built === undefined) return await import("../../src/cli/program.ts");
  // Uses require, because vitest would transform an imported bundle.
  return createRequire(import.meta.url)(join(dirname(built), "program.js")) as typeof Program;
}
