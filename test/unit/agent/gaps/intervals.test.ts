// Sets of intervals compared with a set of half seconds: after any additions and removals they contain the same times.
import fc from "fast-check";
import { expect, test } from "vitest";
import { type Interval, joined, without } from "../../../../src/agent/gaps/intervals.ts";
import { epochMicros } from "../../../../src/core/point.ts";
import { runs } from "../../../support/property.ts";

const interval = fc
  .tuple(fc.integer({ min: 0, max: 20 }), fc.integer({ min: 1, max: 20 }))
  .map(([from, length]): Interval => [epochMicros(from), epochMicros(from + length)]);
const step = fc.record({ add: fc.boolean(), interval });

test("the set holds exactly the added and not removed intervals, in order and without touching", () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 12 }), (steps) => {
      let intervals: readonly Interval[] = [];
      const model = new Set<number>();
      for (const { add, interval: one } of steps) {
        intervals = add ? joined(intervals, one) : without(intervals, one);
        // Each unit is tested at its middle, because the ends of an interval belong to values that are present.
        for (let at = one[0] + 0.5; at < one[1]; at++)
          if (add) model.add(at);
          else model.delete(at);
      }
      const inside: number[] = [];
      for (let at = 0.5; at < 41; at++) if (intervals.some(([from, to]) => from < at && at < to)) inside.push(at);
      expect(inside).toEqual([...model].toSorted((a, b) => a - b));
      for (const [i, [from, to]] of intervals.entries()) {
        expect(from).toBeLessThan(to);
        expect(from).toBeGreaterThanOrEqual(intervals[i - 1]?.[1] ?? 0);
      }
    }),
    runs(500),
  );
});

test("a single instant is kept until an interval around it is removed", () => {
  const moment: Interval = [epochMicros(5), epochMicros(5)];
  const far: Interval = [epochMicros(7), epochMicros(9)];
  expect(joined([far], moment)).toEqual([moment, far]);
  expect(without([moment, far], [epochMicros(6), epochMicros(10)])).toEqual([moment]);
  expect(without([moment, far], [epochMicros(4), epochMicros(5)])).toEqual([far]);
});
