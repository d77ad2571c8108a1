// At one request a second: how late points are when their times have nothing in common.
import { expect, test } from "vitest";
import { Block, type BlockId } from "../../../src/core/block.ts";
import type { InputId } from "../../../src/core/point.ts";
import { urgentShare } from "../../../src/upload/delivery/loader.ts";
import { Envelope } from "../../../src/upload/packing/frame.ts";
import { Packer } from "../../../src/upload/packing/packer.ts";
import type { SeriesQueue } from "../../../src/upload/series/series-queue.ts";
import { Window } from "../../../src/upload/window/window.ts";
import { seeded } from "../../support/runtime.ts";

const envelope = new Envelope("c8ktonqsahsmemfs7lv0");
const start = Date.parse("2026-01-01T00:00:00Z") * 1_000;

interface Steady {
  /** Points per second of each series. */
  readonly rates: readonly number[];
  readonly seconds: number;
  readonly maxLagMs: number;
  readonly maxSeries?: number;
}

/**
 * Adds random times and sends one frame of 8 MiB a second. Returns the greatest age of a point at each request, in
 * seconds.
 */
function oldestAges({ rates, seconds, maxLagMs, maxSeries = 20_000 }: Steady): { ages: number[]; left: number } {
  const random = seeded(11);
  const window = new Window(2_000_000);
  const packer = new Packer();
  const ages: number[] = [];
  for (let second = 0; second < seconds; second++) {
    const series = rates.flatMap((rate, tag) => {
      const count = Math.floor(rate) + (random() < rate % 1 ? 1 : 0);
      if (count === 0) return [];
      const times = Float64Array.from(
        { length: count },
        () => start + second * 1e6 + Math.floor(random() * 1e6),
      ).sort();
      const values = Float64Array.from(times, () => Math.floor(random() * 10_000) / 10);
      return [{ input: `plant/line/machine${String(tag).padStart(3, "0")}` as InputId, times, values }];
    });
    const now = second * 1_000;
    if (series.length > 0) window.add("live", Block.of(second as BlockId, series), now);
    const queues = window.filled("live");
    const candidates = { queues, since: (queue: SeriesQueue) => window.since(queue) };
    ages.push(Math.max(0, ...queues.map((queue) => (now - window.since(queue)) / 1_000)));
    const planning = packer.plan(candidates, {
      maxBytes: 8 * 2 ** 20,
      envelopeBytes: envelope.bytes,
      maxSeries,
      urgentBefore: now - maxLagMs * urgentShare,
    });
    let step = planning.next();
    while (!step.done) step = planning.next();
    for (const { source, count } of step.value?.parts ?? []) window.settle(source, count);
  }
  return { ages, left: window.points("live") };
}

test("10,000 points a second of 1,000 unrelated topics arrive within 10 s", () => {
  const { ages, left } = oldestAges({ rates: Array.from({ length: 1_000 }, () => 10), seconds: 50, maxLagMs: 10_000 });
  expect(Math.max(...ages)).toBeLessThanOrEqual(10);
  expect(left).toBeLessThan(10 * 10_000);
});

test("slow topics among fast ones are not starved", () => {
  const rates = Array.from({ length: 1_000 }, (_, i) => (i < 300 ? 25 : i < 600 ? 1 : 0.05));
  const { ages } = oldestAges({ rates, seconds: 50, maxLagMs: 10_000 });
  expect(Math.max(...ages)).toBeLessThanOrEqual(10);
});

test("series with rates a thousandfold apart share the requests within 10 s", () => {
  const rates = Array.from({ length: 2_000 }, (_, i) => 3_000 / (i + 1) ** 1.1 / 2);
  const { ages } = oldestAges({ rates, seconds: 50, maxLagMs: 10_000 });
  expect(Math.max(...ages)).toBeLessThanOrEqual(10);
});

test("series beyond the limit of a request take turns, however few bytes they need", () => {
  const { ages } = oldestAges({
    rates: Array.from({ length: 24 }, () => 1),
    seconds: 50,
    maxLagMs: 10_000,
    maxSeries: 20,
  });
  expect(Math.max(...ages)).toBeLessThanOrEqual(10);
});
