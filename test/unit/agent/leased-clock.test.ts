// A driver that was suspended does not poll after another agent may have taken over its source.
import { expect, test } from "vitest";
import { leasedClock } from "../../../src/agent/source-set.ts";
import { ManualClock } from "../../support/runtime.ts";

test("a driver whose process was suspended beyond its lease does not poll again", async () => {
  const clock = new ManualClock();
  const stop = new AbortController();
  let isHeld = true;
  const leased = leasedClock(clock, () => isHeld, stop);
  let polls = 0;
  const polling = (async () => {
    for (;;) {
      await leased.sleep(1_000, stop.signal);
      polls++;
    }
  })();
  polling.catch(() => {});
  await clock.advance(3_500);
  expect(polls).toBe(3);
  isHeld = false;
  await clock.advance(3_000);
  expect(polls).toBe(3);
  expect(stop.signal.aborted).toBe(true);
  await expect(polling).rejects.toThrow("another agent of the cluster may read the source now");
});

test.each(["now", "monotonic"] as const)("reading the time with %s without the lease stops the source", (read) => {
  const stop = new AbortController();
  leasedClock(new ManualClock(), () => false, stop)[read]();
  expect(stop.signal.aborted).toBe(true);
});
