// Since when delivery has been in the state that the operator sees.
import { join } from "node:path";
import { expect, test } from "vitest";
import { uploadTally } from "../../../src/upload/delivery/delivery-status.ts";
import { openCatalog } from "../../../src/upload/signals/catalog.ts";
import { ManualClock, testRuntime } from "../../support/runtime.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";

const idle = {
  waitedMs: 0,
  rejected: 0,
  unkept: 0,
  inFlight: 0,
  parked: { refused: 0, unconfirmed: 0, first: [] },
  watch: undefined,
  traffic: { sentBytes: 0, receivedBytes: 0 },
};

test("the bytes of a month are estimated from ten minutes on, from the bytes of both directions", async () => {
  using home = temporaryFolder();
  const clock = new ManualClock();
  const runtime = testRuntime({ clock });
  await using catalog = await openCatalog(join(home.path, "signals.db"), runtime, new AbortController().signal);
  const tally = uploadTally(runtime, 1);
  const traffic = { sentBytes: 600, receivedBytes: 400 };
  const estimate = () => tally.status({ ...idle, catalog, traffic }).traffic.bytesPerMonth;
  await clock.advance(599_999);
  expect(estimate()).toBeUndefined();
  await clock.advance(1);
  // 1,000 bytes in ten minutes, and 30 days.
  expect(estimate()).toBe(1_000 * 6 * 24 * 30);
});

test("delivery is healthy since its first success, over any number of requests and pauses; a failure starts a new period", async () => {
  using home = temporaryFolder();
  const clock = new ManualClock();
  const runtime = testRuntime({ clock });
  await using catalog = await openCatalog(join(home.path, "signals.db"), runtime, new AbortController().signal);
  const tally = uploadTally(runtime, 1);
  const since = () => tally.status({ ...idle, catalog }).since;
  const start = clock.now();

  for (const state of ["sending", "idle", "sending", "idle"] as const) {
    await clock.advance(1_000);
    tally.enter(state);
  }
  expect(since()).toBe(start);

  await clock.advance(1_000);
  tally.trouble("unreachable", "SERVICE_UNREACHABLE", "gone");
  const lost = clock.now();
  await clock.advance(1_000);
  tally.trouble("unreachable", "SERVICE_UNREACHABLE", "gone");
  expect(since()).toBe(lost);

  tally.enter("sending");
  const back = clock.now();
  await clock.advance(1_000);
  tally.enter("idle");
  expect(since()).toBe(back);
});
