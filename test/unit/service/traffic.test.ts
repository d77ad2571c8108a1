import fc from "fast-check";
import { expect, test } from "vitest";
import { Traffic } from "../../../src/service/http/traffic.ts";
import { runs } from "../../support/property.ts";

function trafficOf(starts: readonly number[]) {
  const traffic = new Traffic();
  for (const start of starts) traffic.record("m", start, 10);
  return traffic.counters().get("m");
}

test("calls exactly a second apart count as one in any second, slightly closer ones as two", () => {
  expect(trafficOf([0, 1_000, 2_000])).toEqual({
    requests: 3,
    bytes: 30,
    smallestSpacingMs: 1_000,
    maxStartsPerSecond: 1,
  });
  expect(trafficOf([0, 999.9])).toMatchObject({ maxStartsPerSecond: 2 });
  expect(trafficOf([5])).toMatchObject({
    requests: 1,
    smallestSpacingMs: Number.POSITIVE_INFINITY,
    maxStartsPerSecond: 1,
  });
});

test("spacing and density are those of the sorted starts, whatever order requests complete in", () => {
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 0, max: 8_000 }), { minLength: 2, maxLength: 40 }), (starts) => {
      const sorted = starts.toSorted((a, b) => a - b);
      const spacing = Math.min(...sorted.slice(1).map((start, i) => start - sorted[i]!));
      const density = Math.max(...sorted.map((from) => sorted.filter((to) => to >= from && to - from < 1_000).length));
      expect(trafficOf(starts)).toMatchObject({ smallestSpacingMs: spacing, maxStartsPerSecond: density });
    }),
    runs(500),
  );
});

test("a long run forgets old starts and keeps its counts", () => {
  const starts = Array.from({ length: 10_000 }, (_, i) => i * 100);
  expect(trafficOf(starts)).toEqual({
    requests: 10_000,
    bytes: 100_000,
    smallestSpacingMs: 100,
    maxStartsPerSecond: 10,
  });
});
