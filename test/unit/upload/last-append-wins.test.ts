// Buffer and dispatcher with a service that stores by input and time, where the last write wins.
import { test } from "vitest";
import { expectLastAppends } from "../../support/order-steps.ts";

test("whatever is refused, killed, redelivered and reloaded, the service ends with the value appended last", async () => {
  await expectLastAppends(10);
});
