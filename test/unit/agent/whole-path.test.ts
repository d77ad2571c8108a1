// The service receives the same requests whether a driver yields readings in columns or one by one.
import { expect, test } from "vitest";
import { expectSamePath } from "../../support/whole-path.ts";

test("readings in columns give the same requests, counts, states and log as plain ones, whatever disk and clock do", async () => {
  expect(await expectSamePath(4, 8)).toBeGreaterThan(0);
});
