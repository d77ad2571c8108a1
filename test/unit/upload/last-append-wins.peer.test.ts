// The long form of `last-append-wins.test.ts`, with another seed in each run.
import { test } from "vitest";
import { expectLastAppends } from "../../support/order-steps.ts";

test("the service ends with the value appended last, in 400 random histories", { timeout: 900_000 }, async () => {
  await expectLastAppends(400);
});
