// Commits that wait for further messages, with a model of a broker's send window in simulated time.
import fc from "fast-check";
import { expect, test } from "vitest";
import { runs } from "../../../support/property.ts";
import { seeded } from "../../../support/runtime.ts";
import { runSendWindow } from "../../../support/send-window-model.ts";

const delay = 50;
const receiveMaximum = 2_000;
const between = (min: number, max: number) => fc.double({ min, max, noNaN: true });
/** From 1 to 65,535, distributed logarithmically. */
const windows = between(0, 16).map((power) => Math.min(65_535, Math.floor(2 ** power)));
/** Network latency in milliseconds, as to a broker on the site. */
const way = between(0.05, 1);
/** The duration of a sync in milliseconds: 0.5 to 1.5 times `typical`. */
const syncs = (typical: number, seed: number) => {
  const random = seeded(seed);
  return () => typical * (0.5 + random());
};

test("a broker's backlog is drained nearly as fast as with immediate commits, whatever its window", () => {
  fc.assert(
    fc.property(windows, way, between(0.2, 30), fc.nat(), (window, ms, typical, seed) => {
      const broker = { window, between: () => 0, way: ms, duration: 20_000 };
      const atOnce = runSendWindow({ ...broker, sync: syncs(typical, seed), delay: 0, learns: false });
      const waiting = runSendWindow({ ...broker, sync: syncs(typical, seed), delay, learns: true, receiveMaximum });
      // About 256 messages are committed together if the window permits. This delays windows slightly larger than that.
      const least = window >= 200 && window < 2_000 ? 0.75 : 0.95;
      expect(waiting.acknowledged).toBeGreaterThan(least * atOnce.acknowledged);
    }),
    runs(15),
  );
});

test("a stream within the window keeps its rate with few commits a second", () => {
  fc.assert(
    fc.property(between(30, 5_000), between(0.2, 10), fc.boolean(), fc.nat(), (rate, typical, isEven, seed) => {
      const random = seeded(seed);
      const gap = isEven ? () => 1_000 / rate : () => (-1_000 / rate) * Math.log(1 - random());
      const stream = { window: receiveMaximum, between: gap, way: 1, sync: syncs(typical, seed), duration: 20_000 };
      const { acknowledged, commits, longest } = runSendWindow({ ...stream, delay, learns: true, receiveMaximum });
      expect(acknowledged).toBeGreaterThan(0.9 * 20 * rate - 40);
      expect(commits / 20).toBeLessThan(rate > 100 ? 35 + rate / 64 : 65);
      // A message waits for one commit in the receive queue, and for the next one in the buffer.
      expect(longest).toBeLessThan(2 * (delay + 1.5 * typical) + 1);
    }),
    runs(15),
  );
});

test.each([
  ["mosquitto 3.1.1", 20, 600],
  ["EMQX", 32, 1_000],
  ["HiveMQ", 10, 200],
])(
  "the window of %s (%i) does not hold up %i messages/s, which it could not carry in commits of 50 ms",
  (_, window, rate) => {
    const stream = { window, between: () => 1_000 / rate, way: 0.5, sync: syncs(2, 1), duration: 60_000 };
    const { acknowledged, commits } = runSendWindow({ ...stream, delay, learns: true });
    expect(acknowledged).toBeGreaterThan(0.99 * 60 * rate);
    // When half of the window is filled, it is committed at once.
    expect(commits / 60).toBeLessThan((5 * rate) / window);
  },
);

test("single messages are committed on arrival", () => {
  const { commits, acknowledged, longest } = runSendWindow({
    window: receiveMaximum,
    between: () => 500,
    way: 0.5,
    sync: () => 2,
    delay,
    learns: true,
    duration: 60_000,
  });
  expect(acknowledged).toBe(119);
  expect(commits).toBe(acknowledged);
  expect(longest).toBeLessThan(delay + 3);
});
