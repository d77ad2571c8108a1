// Mutation tests: each safeguard is removed from a copy of the sources, and its test must fail.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { ablations } from "../support/ablations/all.ts";
import { Workbench } from "../support/ablations/workbench.ts";

vi.setConfig({ testTimeout: 600_000 });

let workbench: Workbench;
beforeAll(() => {
  workbench = new Workbench();
});
afterAll(() => workbench[Symbol.asyncDispose]());

test("these tests pass with every safeguard in place", { timeout: 1_200_000 }, async () => {
  const tests = [...new Set(ablations.map((each) => `test/${each.test}`))];

  expect(await workbench.attempt({ tests }, 1_100_000)).toEqual({ passed: expect.any(Number), failed: [], broken: [] });
});

/** The tests named here take a few seconds. The limit allows for a busy machine. */
const longestMs = 120_000;

// vitest shows the title of each case with its safeguard and test.
const named = ablations.map((each) => [each.safeguard, each.test, each] as const);

test.each(named)("without %s %s fails", async (_safeguard, _test, { file, code, without, test: path, ...expected }) => {
  const change = { file: `src/${file}`, code, without };

  const { failed, broken } = await workbench.attempt(
    { change, tests: [`test/${path}`], name: expected.name },
    longestMs,
  );

  // The test's own statement must fail. The changed code must still load and run.
  expect(broken).toEqual([]);
  expect(failed).not.toEqual([]);
  const reasons = [
    "AssertionError",
    "Property failed",
    "did not come true",
    ...(expected.message ? [expected.message] : []),
  ];
  for (const { message } of failed)
    expect(
      reasons.some((part) => message.includes(part)),
      message,
    ).toBe(true);
});

test("no sync of a file or folder of the buffer is without a line in the table", () => {
  const sources = join(import.meta.dirname, "../../src/buffer/disk");
  const missing: string[] = [];
  for (const file of readdirSync(sources, { recursive: true, encoding: "utf8" }).filter((name) =>
    name.endsWith(".ts"),
  )) {
    const text = readFileSync(join(sources, file), "utf8");
    const inTable = ablations.filter((each) => each.file === `buffer/disk/${file}`);
    for (const [line] of text.matchAll(
      /^(?!.*function|.*: void;).*(?:[fF]ile\.sync\(\)|\bsync(?:Folder)?\((?:dirname|this|folder|`)).*$/gm,
    ))
      if (!inTable.some(({ code, without }) => code.includes(line.trim()) && !without.includes(line.trim())))
        missing.push(`${file}: ${line.trim()}`);
  }

  expect(missing).toEqual([]);
});
