// The page and `status` predict the backlog only when the measurements allow it.
import { expect, test } from "vitest";
import { backlogStatus, backlogTrend } from "../../../src/agent/status/backlog-trend.ts";
import type { BacklogStatus, UploadState } from "../../../src/agent/status/status.ts";
import type { Loss } from "../../../src/core/buffer.ts";
import { epochMicros } from "../../../src/core/point.ts";
import { ManualClock } from "../../support/runtime.ts";

interface Second {
  readonly waiting: number;
  readonly appended?: number;
  readonly lost?: number;
  readonly bytes?: number;
}

/** What the page shows after each second of `story`. */
async function shownIn(story: readonly Second[], parkedInputs = 0, state: UploadState = "delivering") {
  const clock = new ManualClock();
  const oldest = epochMicros(clock.now() - 3_600e6);
  const trend = backlogTrend(clock);
  const shown: BacklogStatus[] = [];
  for (const { waiting, appended = 0, lost = 0, bytes = 0 } of story) {
    const loss: Loss = { reason: "maxSize", points: lost, from: undefined, to: undefined, intervals: [] };
    trend.sample({ unsettledPoints: waiting, appendedPoints: appended, losses: [loss], bytes });
    const { progress } = trend;
    const room = { intervalMs: 0, roomBytes: 1_000_000 - bytes, untilTooOldMs: 86_400_000 };
    shown.push(backlogStatus({ time: clock.now(), state, points: waiting, oldest, parkedInputs, progress, ...room }));
    await clock.advance(1_000);
  }
  return shown;
}

const seconds = (count: number, of: (i: number) => Second) => Array.from({ length: count }, (_, i) => of(i));

test("a backlog that grows while requests settle thousands of points shows no estimate", async () => {
  // The backlog grows from 6,600 to 23,300 points in 7 minutes. Every 10 s a request settles 5,000 points.
  const story = seconds(420, (i) => ({
    waiting: Math.round(6_600 + (i * 16_700) / 420 + (i % 10) * 500),
    appended: i * 540,
  }));
  const shown = await shownIn(story);

  expect(shown.filter(({ drainMs, text }) => drainMs !== undefined || /caught up/.test(text))).toEqual([]);
  expect(shown.at(-1)).toMatchObject({ trend: "growing", text: expect.stringMatching(/^grows by 4\d points\/s$/) });
});

test("a shrinking backlog ends at the measured rate less the rate of new points", async () => {
  const shown = await shownIn(seconds(90, (i) => ({ waiting: 1_000_000 - i * 1_000, appended: i * 100 })));

  expect(shown[5]).toEqual({ trend: "unknown", text: "no estimate yet" });
  expect(shown.at(-1)).toEqual({ trend: "shrinking", text: "caught up in about 15 min", drainMs: 911_000 });
});

test("the estimate ends when the backlog stops shrinking", async () => {
  const shown = await shownIn(
    seconds(120, (i) => ({ waiting: 100_000 - Math.min(i, 50) * 1_000 + Math.max(0, i - 50) * 100, appended: i })),
  );

  expect(shown[50]?.trend).toBe("shrinking");
  expect(shown.at(-1)?.trend).toBe("growing");
  expect(shown.slice(80).filter(({ drainMs }) => drainMs !== undefined)).toEqual([]);
});

test("points dropped by the buffer do not count as progress", async () => {
  const shown = await shownIn(
    seconds(60, (i) => ({ waiting: 100_000 + i * 100 - i * 500, lost: i * 500, appended: i * 100 })),
  );

  expect(shown.at(-1)).toEqual({ trend: "growing", text: "grows by 100 points/s" });
});

test("no time is estimated while points wait for inputs that the service refuses", async () => {
  const shrinks = await shownIn(
    seconds(60, (i) => ({ waiting: 100_000 - i * 1_000 })),
    2,
  );
  const grows = await shownIn(
    seconds(60, (i) => ({ waiting: 100 + i * 2, appended: i * 15 })),
    1,
  );

  expect(shrinks.at(-1)).toEqual({
    trend: "shrinking",
    text: "shrinks by 1000 points/s; the points of 2 inputs wait until the service takes them",
  });
  expect(grows.at(-1)).toEqual({
    trend: "growing",
    text: "grows by 2 points/s; the points of 1 input wait until the service takes them",
  });
});

test("points in flight are not a backlog, and a backlog does not shrink while nothing is delivered", async () => {
  const onTheirWay = await shownIn(seconds(60, (i) => ({ waiting: 2_000 - i, appended: i * 100 })));
  const held = await shownIn(
    seconds(60, (i) => ({ waiting: 100_000 - i * 1_000 })),
    0,
    "held",
  );

  expect(onTheirWay.at(-1)).toEqual({ trend: "none", text: "keeps up" });
  expect(held.at(-1)).toEqual({ trend: "unknown", text: "waits" });
  expect((await shownIn([{ waiting: 0 }]))[0]).toEqual({ trend: "none", text: "none" });
});

test("while nothing is delivered the buffer is full at the rate at which it grows, at the latest when points are too old", async () => {
  const growing = (bytesPerSecond: number) =>
    shownIn(
      seconds(60, (i) => ({ waiting: 1_000 + i, appended: i, bytes: i * bytesPerSecond })),
      0,
      "retrying",
    );
  const fast = await growing(100);
  expect(fast[5]).toEqual({ trend: "unknown", text: "waits" });
  expect(fast.at(-1)).toEqual({
    trend: "unknown",
    text: "waits; buffer full in about 3 h",
    fullMs: (1_000_000 - 5_900) * 10,
  });
  expect((await growing(1)).at(-1)?.fullMs).toBe(86_400_000);
  expect((await growing(0)).at(-1)).toEqual({ trend: "unknown", text: "waits" });
});
