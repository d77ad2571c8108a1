// How long a source that stops waits for its last points to reach the stream of the cluster.
import { expect, test } from "vitest";
import { handOver } from "../../../src/agent/upkeep/cluster-delivery.ts";
import { ManualClock } from "../../support/runtime.ts";

const never = new AbortController().signal;

/** A buffer in which 5 points wait for the stream. */
function waiting({ isPaused = false } = {}) {
  const clock = new ManualClock();
  const counts = { settledPoints: 10, unsettledPoints: 5 };
  let isOver = false;
  void handOver({ stats: () => counts }, () => isPaused, clock, never).then(() => {
    isOver = true;
  });
  return {
    counts,
    isOverAfter: async (ms: number) => {
      await clock.advance(ms);
      return isOver;
    },
  };
}

test("it waits until as many points have reached the stream as waited at its start", async () => {
  const { counts, isOverAfter } = waiting();
  counts.settledPoints = 14;
  counts.unsettledPoints = 100;
  expect(await isOverAfter(1_000)).toBe(false);
  counts.settledPoints = 15;
  expect(await isOverAfter(100)).toBe(true);
});

test("it waits 2 s at the latest, so that the next agent can read", async () => {
  const { isOverAfter } = waiting();
  expect(await isOverAfter(1_900)).toBe(false);
  expect(await isOverAfter(200)).toBe(true);
});

test("it does not wait while nothing reaches the stream", async () => {
  const { isOverAfter } = waiting({ isPaused: true });
  expect(await isOverAfter(0)).toBe(true);
});
