// How many points a request carries, compared with what is possible: exact bounds for series that share all times or
// none, and the best of many random orders for the cases between.
import { expect, test } from "vitest";
import type { Series } from "../../../src/core/block.ts";
import { packingEnvelope, packingIntegration, planOf, windowOf } from "../../support/packing.ts";
import { changing, grouped, polled, unrelated } from "../../support/packing-workloads.ts";
import { bestFrame } from "../../support/reference-packer.ts";
import { seeded } from "../../support/runtime.ts";

const full = 8 * 2 ** 20;

/**
 * The number of points in a frame without nulls, for series with common times: as many rows as fit with all their
 * values.
 */
function boundWithoutNulls(series: readonly Series[], bytes: number): number {
  let text = 0;
  let points = 0;
  let names = 0;
  for (const { input, values } of series) {
    for (const value of values) text += JSON.stringify(value).length + 1;
    points += values.length;
    names += input.length + 5;
  }
  const rowBytes = (text / points) * series.length + 23;
  return Math.floor((bytes - packingEnvelope.bytes - names) / rowBytes) * series.length;
}

test("A: polled tags fill a request to 0.95 of the maximum without any null, about 1.57 million points", () => {
  const series = polled(1_800);
  const plan = planOf(windowOf(series), full);
  const bound = boundWithoutNulls(series, full);
  expect(bound).toBeGreaterThan(1_500_000);
  expect(plan?.points).toBeGreaterThanOrEqual(0.95 * bound);
  expect(plan?.nulls).toBe(0);
});

test("a single series fills a request, also where its first time is shorter than the others", () => {
  const [series] = unrelated(40_000, 1);
  const times = series!.times.map((_, i) => 1e15 + i * 1_000);
  const plan = planOf(windowOf([{ ...series!, times }]), 2 ** 20);
  // A point of this series takes 27 to 35 bytes.
  expect(plan?.bytes).toBeGreaterThan(2 ** 20 - 40);
});

test.for([1, 10, 60, 600])("B: unrelated series of depth %i come to 0.95 of the best k·m", (depth) => {
  let best = 0;
  for (let k = 1; k <= 1_000; k++) {
    const m = Math.min(depth, Math.floor(full / (k * (27.05 + 5 * k))));
    best = Math.max(best, k * m);
  }
  // One point of each of 1,000 series, which are all there are.
  expect(planOf(windowOf(unrelated(depth)), full)?.points).toBeGreaterThanOrEqual(0.95 * best);
});

test.for([
  ["C, a minute", () => grouped(60)],
  ["C, ten minutes", () => grouped(600)],
  ["D, a minute", () => changing(60)],
  ["D, ten minutes", () => changing(600)],
] as const)("%s: the first request carries 0.9 of the best of many random orders", ([, make]) => {
  const series = make();
  const ours = planOf(windowOf(series), full)?.points ?? 0;
  const options = { maxBytes: full, restarts: 25, integration: packingIntegration, random: seeded(9) };
  expect(ours).toBeGreaterThanOrEqual(0.9 * bestFrame(series, options));
});

test("the reference counts the same bytes as the packer", () => {
  // One series whose points all fit exactly, without a byte to spare.
  const series = unrelated(50, 1);
  const { bytes, points } = planOf(windowOf(series), full) ?? { bytes: 0, points: 0 };
  const options = { restarts: 1, integration: packingIntegration, random: seeded(1) };
  expect([points, bestFrame(series, { ...options, maxBytes: bytes })]).toEqual([50, 50]);
  expect(bestFrame(series, { ...options, maxBytes: bytes - 1 })).toBeLessThan(50);
});
