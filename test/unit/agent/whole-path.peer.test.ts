// The long form of `whole-path.test.ts`: more and longer random sequences, different in each run.
import { expect, test } from "vitest";
import { expectSamePath } from "../../support/whole-path.ts";

test("readings in columns give the same requests, counts, states and log as plain ones, in long histories", async () => {
  expect(await expectSamePath(10, 20)).toBeGreaterThan(0);
});
