// The interval between takeovers of a session grows.
import { expect, test } from "vitest";
import { takeoverPause } from "../../../src/agent/pipeline.ts";

/** Takeovers in the first two minutes, in seconds: by this client, and by a rival that reconnects after `rivalMs`. */
function war(rivalMs: number, random: () => number): number[] {
  const pause = takeoverPause(random);
  const takeovers: number[] = [];
  for (let now = 0; now < 120_000; ) {
    // The rival takes the session, and this client takes it back after the pause.
    takeovers.push(now / 1_000);
    now += pause(now);
    takeovers.push(now / 1_000);
    now += rivalMs;
  }
  return takeovers;
}

test.each([0, 100, 1_000, 5_000])(
  "before the first minute is over there is less than one takeover in 10 s: a rival back after %d ms",
  (rivalMs) => {
    for (const random of [() => 0, () => 0.5, () => 0.999]) {
      const late = war(rivalMs, random).filter((second) => second >= 30 && second < 90);
      expect(late.length / 6).toBeLessThan(1);
    }
  },
);

test("two agents that pause alike take turns ever more slowly", () => {
  const pauses = [takeoverPause(() => 0.2), takeoverPause(() => 0.7)];
  const takeovers: number[] = [];
  for (let now = 0, turn = 0; now < 600_000; turn++) {
    takeovers.push(now);
    now += pauses[turn % 2]?.(now) ?? 0;
  }
  expect(takeovers.filter((at) => at >= 30_000 && at < 60_000).length).toBeLessThan(3);
  // The pauses do not shrink while the other agent has the session.
  expect(takeovers.filter((at) => at >= 300_000).length).toBeLessThanOrEqual(5);
});

test("after five quiet minutes the next takeover is the first again", () => {
  const pause = takeoverPause(() => 0);
  expect([0, 10_000, 40_000].map((now) => pause(now))).toEqual([10_000, 30_000, 60_000]);
  expect(pause(340_000)).toBe(10_000);
});
