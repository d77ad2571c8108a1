import { expect, test } from "vitest";
import { nextSlot, type Slot, slots } from "../../../../src/source/modbus/polling/schedule.ts";
import { ManualClock } from "../../../support/runtime.ts";

const start = Date.parse("2026-01-01T00:00:00Z");
/** Milliseconds after the start of the test. */
const after = (slot: Slot) => slot.time / 1_000 - start;

/** Collects slots until `stop`. `work` returns the milliseconds that a slot takes. */
function poll(everyMs: number, clock: ManualClock, work: (slot: Slot) => number = () => 0) {
  const seen: Slot[] = [];
  const controller = new AbortController();
  const ended = (async () => {
    for await (const slot of slots(everyMs, clock, controller.signal)) {
      seen.push(slot);
      const ms = work(slot);
      if (ms > 0) await clock.sleep(ms, controller.signal);
    }
  })().catch(() => {});
  return {
    seen,
    stop: async () => {
      controller.abort();
      await ended;
    },
  };
}

test("polls lie on the grid of the wall clock, whenever one starts", async () => {
  const clock = new ManualClock("2026-01-01T00:00:00.123Z");
  const { seen, stop } = poll(250, clock);
  await clock.advance(1_000);
  await stop();
  expect(seen.map(after)).toEqual([250, 500, 750, 1_000]);
});

test("a long interval begins with a poll at once and continues on the grid", async () => {
  const clock = new ManualClock("2026-01-01T00:20:00.500Z");
  const { seen, stop } = poll(3_600_000, clock);
  await clock.advance(2 * 3_600_000);
  await stop();
  expect(seen.map(after)).toEqual([1_200_500, 3_600_000, 7_200_000]);
});

test("a poll that takes too long skips slots, which are counted and not repeated", async () => {
  const clock = new ManualClock();
  const { seen, stop } = poll(100, clock, (slot) => (after(slot) === 100 ? 250 : 10));
  await clock.advance(650);
  await stop();
  expect(seen.map((slot) => [after(slot), slot.skipped])).toEqual([
    [100, 0],
    [400, 2],
    [500, 0],
    [600, 0],
  ]);
});

test("a clock set back a little does not poll twice", async () => {
  const clock = new ManualClock();
  const { seen, stop } = poll(1_000, clock);
  await clock.advance(1_000);
  clock.stepWall(-20);
  await clock.advance(1_500);
  await stop();
  expect(seen.map(after)).toEqual([1_000, 2_000]);
});

test("a clock set back by an hour does not stall", async () => {
  const clock = new ManualClock();
  const { seen, stop } = poll(1_000, clock);
  await clock.advance(1_500);
  clock.stepWall(-3_600_000);
  await clock.advance(3_000);
  await stop();
  expect(seen.length).toBeGreaterThanOrEqual(3);
});

test("no poll waits longer than one and a half intervals for a clock that was set back", async () => {
  const clock = new ManualClock("2026-01-01T00:00:00Z");
  const { seen, stop } = poll(3_600_000, clock);
  await clock.advance(57 * 60_000);
  const before = seen.length;
  clock.stepWall(-100 * 60_000);
  await clock.advance(90 * 60_000);
  await stop();
  expect(seen.length).toBeGreaterThan(before);
});

test("a clock set forward by an hour polls at once, stamped with the new time, and counts no skipped polls", async () => {
  const clock = new ManualClock();
  const { seen, stop } = poll(1_000, clock);
  await clock.advance(1_500);
  clock.stepWall(3_600_000);
  await clock.advance(2_000);
  await stop();
  expect(seen.map(after).slice(1, 3)).toEqual([3_602_000, 3_603_000]);
  expect(seen.every((slot) => slot.skipped === 0)).toBe(true);
});

test("aborting ends the waiting", async () => {
  const clock = new ManualClock();
  const controller = new AbortController();
  const next = slots(1_000, clock, controller.signal).next();
  controller.abort(new Error("enough"));
  await expect(next).rejects.toThrow("enough");
});

test("the next slot is always later than now", () => {
  expect(nextSlot(1_000, 1_000)).toBe(2_000);
  expect(nextSlot(1_001, 1_000)).toBe(2_000);
});
