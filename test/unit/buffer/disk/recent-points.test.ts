import fc from "fast-check";
import { expect, test } from "vitest";
import { RecentPoints } from "../../../../src/buffer/disk/recent-points.ts";
import { runs } from "../../../support/property.ts";

const points = (list: readonly (readonly [number, number, number])[]) => ({
  inputs: Uint32Array.from(list, ([input]) => input),
  times: Float64Array.from(list, ([, time]) => time),
  values: Float64Array.from(list, ([, , value]) => value),
  count: list.length,
});

test("no time of an input ever carries two values, and the same value is stored once", () => {
  const point = fc.tuple(fc.nat(3), fc.nat(12), fc.nat(2));
  const groups = fc.array(fc.record({ list: fc.array(point, { maxLength: 12 }), stored: fc.nat(12) }), {
    maxLength: 12,
  });
  fc.assert(
    fc.property(groups, (all) => {
      const recent = new RecentPoints(4_096);
      const model = new Map<string, number>();
      for (const { list, stored } of all) {
        const group = points(list);
        const { count, duplicates, collided } = recent.admit(group);
        const tentative = new Map(model);
        let expected = 0;
        let moved = 0;
        for (const [input, time, value] of list) {
          let free = time;
          while (tentative.has(`${input} ${free}`) && tentative.get(`${input} ${free}`) !== value) free++;
          if (tentative.has(`${input} ${free}`)) continue;
          tentative.set(`${input} ${free}`, value);
          expect([group.inputs[expected], group.times[expected], group.values[expected]]).toEqual([input, free, value]);
          expected++;
          if (free !== time) moved++;
        }
        expect({ count, duplicates, collided }).toEqual({
          count: expected,
          duplicates: list.length - expected,
          collided: moved,
        });
        const kept = Math.min(stored, count);
        recent.confirm(kept);
        recent.undo();
        for (let i = 0; i < kept; i++) model.set(`${group.inputs[i]} ${group.times[i]}`, group.values[i]!);
      }
    }),
    runs(500),
  );
});

test("what is older than the window is forgotten, and the newest point of an input never is", () => {
  const recent = new RecentPoints(1_024);
  const store = (list: readonly (readonly [number, number, number])[]) => {
    const admission = recent.admit(points(list));
    recent.confirm(admission.count);
    return admission.count;
  };
  store([
    [1, 10, 1],
    [1, 20, 2],
  ]);
  for (let i = 0; i < 3_000; i++) store([[2, 100 + i, i]]);

  expect(store([[1, 10, 1]])).toBe(1);
  expect(store([[1, 20, 2]])).toBe(0);
});
