// Runs test files on changed sources, one change after the other, in one process, so that the start-up cost of a test
// run is paid once. Started in a copy of the project. Reads one `Trial` per line and writes one `Result` per line.
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { TestCase } from "vitest/node";
import { createVitest } from "vitest/node";

export interface Trial {
  /** The change; undefined: none. `code` occurs once in `file`. */
  readonly change?: { readonly file: string; readonly code: string; readonly without: string };
  readonly tests: readonly string[];
  /** A part of the names of the tests to run; default: all. */
  readonly name?: string | undefined;
}

export interface Result {
  readonly passed: number;
  /** Failed tests with the message of their first error, and errors outside of tests. */
  readonly failed: readonly { readonly name: string; readonly message: string }[];
  /** Errors that kept a file from loading. */
  readonly broken: readonly string[];
}

const vitest = await createVitest("test", {
  config: join(process.cwd(), "test/vitest.config.ts"),
  root: process.cwd(),
  watch: false,
  reporters: [],
  bail: 1,
  testTimeout: 20_000,
  maxWorkers: 1,
});
await vitest.standalone();
for await (const line of createInterface({ input: process.stdin })) {
  const result = await attempt(JSON.parse(line) as Trial);
  process.stdout.write(`${JSON.stringify(result)}\n`);
}
await vitest.close();

async function attempt({ change, tests, name }: Trial): Promise<Result> {
  // Without a safeguard a condition may never become true. With all of them, a busy machine may take its time.
  if (change) process.env.TAGFERRY_WITHIN_MS = "5000";
  else delete process.env.TAGFERRY_WITHIN_MS;
  const undo = change && apply(change);
  // Errors of the previous trial.
  vitest.state.clearErrors();
  try {
    // Names may contain special characters of regular expressions.
    if (name === undefined) vitest.resetGlobalTestNamePattern();
    else vitest.setGlobalTestNamePattern(new RegExp(name.replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&")));
    const specifications = await vitest.globTestSpecifications([...tests]);
    if (specifications.length < tests.length)
      return { passed: 0, failed: [], broken: [`not all found: ${tests.join(", ")}`] };
    const wanted = new Set(specifications.map(({ moduleId }) => moduleId));
    const { testModules, unhandledErrors } = await vitest.runTestSpecifications(specifications);
    // Includes modules of earlier trials.
    const modules = testModules.filter(({ moduleId }) => wanted.has(moduleId));
    const all = modules.flatMap((module) => [...module.children.allTests()]);
    return {
      passed: all.filter((test) => test.result().state === "passed").length,
      failed: [
        ...all.filter((test) => test.result().state === "failed").map((test) => failure(test)),
        ...unhandledErrors.map(unhandled),
      ],
      broken: modules.flatMap((module) => module.errors()).map(messageOf),
    };
  } finally {
    undo?.();
  }
}

function failure(test: TestCase): { readonly name: string; readonly message: string } {
  const [error] = test.result().errors ?? [];
  return { name: test.fullName, message: messageOf(error) };
}

/** Such an error belongs to no test for certain: its stack and the test that ran last are all there is to find it by. */
function unhandled(error: unknown): { readonly name: string; readonly message: string } {
  const {
    stack,
    VITEST_TEST_PATH: path,
    VITEST_TEST_NAME: name,
  } = Object(error) as Readonly<Record<string, string | undefined>>;
  return { name: "unhandled", message: `${messageOf(error)}, in ${path} > ${name}\n${stack}` };
}

function messageOf(error: unknown): string {
  const { name, message } = Object(error) as Partial<Error>;
  return `${name}: ${message}`;
}

function apply({ file, code, without }: NonNullable<Trial["change"]>): () => void {
  const path = join(process.cwd(), file);
  const whole = readFileSync(path, "utf8");
  const write = (text: string) => {
    writeFileSync(path, text);
    vitest.invalidateFile(path);
  };
  if (whole.split(code).length !== 2) throw new Error(`${file} does not hold once: ${code}`);
  write(whole.replace(code, () => without));
  return () => write(whole);
}
