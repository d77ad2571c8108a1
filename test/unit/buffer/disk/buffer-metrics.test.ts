// Metrics of losses: each reason from the start, and each loss once, also across restarts.
import { expect, test } from "vitest";
import { lossReasons } from "../../../../src/buffer/disk/counters/point-counters.ts";
import { BufferMetrics } from "../../../../src/buffer/disk/disk-buffer.ts";
import type { BufferStats } from "../../../../src/core/buffer.ts";
import { testRuntime } from "../../../support/runtime.ts";

const stats = (losses: BufferStats["losses"], settledPoints = 0): BufferStats => ({
  bytes: 0,
  segments: 0,
  appendedPoints: 0,
  settledPoints,
  refusedPoints: 0,
  unsettledPoints: 0,
  oldest: undefined,
  duplicatePoints: 0,
  collidedPoints: 0,
  losses,
  degraded: undefined,
});
const loss = (reason: string, points: number) => ({ reason, points, from: undefined, to: undefined, intervals: [] });

test("the first loss with a new reason is counted like any other", () => {
  const runtime = testRuntime();
  const metrics = new BufferMetrics(runtime.metrics);
  metrics.update(stats([]));
  metrics.update(stats([loss("maxSize", 40)]));
  metrics.update(stats([loss("maxSize", 40), loss("damaged", 3)]));

  expect(runtime.metric("buffer_lost_points_total", { reason: "maxSize" })).toBe(40);
  expect(runtime.metric("buffer_lost_points_total", { reason: "damaged" })).toBe(3);
});

test("losses count since the buffer was created, deliveries since the program started", () => {
  const runtime = testRuntime();
  const metrics = new BufferMetrics(runtime.metrics);
  metrics.update(stats([loss("missing", 12)], 1_000));
  metrics.update(stats([loss("missing", 12)], 1_005));

  expect(runtime.metric("buffer_lost_points_total", { reason: "missing" })).toBe(12);
  expect(runtime.metric("buffer_settled_points_total")).toBe(5);
});

test("every loss reason has its series before the first loss", () => {
  const added: string[] = [];
  const { metrics } = testRuntime();
  const counter = (declaration: { name: string }) => ({
    add: (n: number, labels?: Readonly<Record<string, string>>) =>
      added.push(`${declaration.name} ${labels?.reason} ${n}`),
  });
  new BufferMetrics({ ...metrics, counter });

  for (const reason of lossReasons) expect(added).toContain(`buffer_lost_points_total ${reason} 0`);
});
