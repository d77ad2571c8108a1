// Which points are duplicates, in order or late.

import fc from "fast-check";
import { expect, test } from "vitest";
import { keepSameTime, type PointColumns } from "../../../../src/buffer/disk/format/input-table.ts";
import { mostKeptRanges } from "../../../../src/buffer/disk/segments/kept-times.ts";
import { InputMarks } from "../../../../src/buffer/disk/segments/late-points.ts";
import { runs } from "../../../support/property.ts";

type Given = readonly [input: number, time: number, value: number];

const group = (points: readonly Given[]): PointColumns => ({
  inputs: Uint32Array.from(points, ([input]) => input),
  times: Float64Array.from(points, ([, time]) => time),
  values: Float64Array.from(points, ([, , value]) => value),
  count: points.length,
});

function admit(marks: InputMarks, points: readonly Given[]) {
  const columns = group(points);
  const { count, inOrder, duplicates, collided } = marks.admit(columns);
  const all = Array.from({ length: count }, (_, i) => [columns.inputs[i], columns.times[i], columns.values[i]]);
  return { ordered: all.slice(0, inOrder), late: all.slice(inOrder), duplicates, collided };
}

test("a repeat is dropped only when it equals the newest value of its time", () => {
  expect(
    admit(new InputMarks(), [
      [0, 10, 1],
      [0, 10, 0],
      [0, 10, 0],
      [0, 10, 1],
      [1, 10, 1],
    ]),
  ).toEqual({
    ordered: [
      [0, 10, 1],
      [1, 10, 1],
    ],
    late: [
      [0, 10, 0],
      [0, 10, 1],
    ],
    duplicates: 1,
    collided: 2,
  });
});

test("repeats in the next group are compared with the last value of the newest time", () => {
  const marks = new InputMarks();
  admit(marks, [
    [0, 10, 1],
    [0, 10, 2],
  ]);
  expect(
    admit(marks, [
      [0, 10, 2],
      [0, 10, 1],
    ]),
  ).toMatchObject({ late: [[0, 10, 1]], duplicates: 1 });
});

test("after a group that was not stored, none of its points is dropped", () => {
  const marks = new InputMarks();
  const columns = group([
    [0, 10, 1],
    [1, 10, 1],
  ]);
  marks.undo(columns, marks.admit(columns));

  expect(
    admit(marks, [
      [0, 10, 1],
      [1, 10, 1],
      [1, 11, 2],
    ]),
  ).toEqual({
    ordered: [[1, 11, 2]],
    late: [
      [0, 10, 1],
      [1, 10, 1],
    ],
    duplicates: 0,
    collided: 0,
  });
});

test("every point up to the floor is late, whatever its input", () => {
  const marks = new InputMarks(10);
  expect(
    admit(marks, [
      [0, 10, 1],
      [0, 11, 1],
      [7, 9, 1],
    ]),
  ).toMatchObject({
    ordered: [[0, 11, 1]],
    late: [
      [0, 10, 1],
      [7, 9, 1],
    ],
  });
});

test("kept values with the same time are shifted by 1 µs in the order of arrival, whatever their values", () => {
  const marks = new InputMarks();
  const kept = keepSameTime;
  expect(
    admit(marks, [
      [kept, 10, 1],
      [kept, 10, 0],
      [kept, 10, 1],
      [kept, 20, 1],
      [kept, 10, 1],
      [kept, 12, 4],
    ]),
  ).toEqual({
    ordered: [
      [0, 10, 1],
      [0, 11, 0],
      [0, 12, 1],
      [0, 20, 1],
    ],
    late: [
      [0, 13, 1],
      [0, 14, 4],
    ],
    duplicates: 0,
    collided: 4,
  });
});

test("kept values with the same time are shifted as well when they are older than everything remembered", () => {
  const marks = new InputMarks();
  for (let i = 0; i <= mostKeptRanges; i++) admit(marks, [[keepSameTime, 100 + 10 * i, 0]]);
  const older = [5, 5, 5, 40, 40].map((time, value): Given => [keepSameTime, time, value]);

  expect(older.flatMap((point) => admit(marks, [point]).late)).toEqual([
    [0, 5, 0],
    [0, 6, 1],
    [0, 7, 2],
    [0, 40, 3],
    [0, 41, 4],
  ]);
});

test("kept values never share a time, and each group lists points in order, then late ones, by their appends", () => {
  const points = fc.array(fc.tuple(fc.nat(2), fc.nat(12), fc.nat(1)), { maxLength: 12 });
  fc.assert(
    fc.property(fc.array(points, { maxLength: 6 }), (groups) => {
      const marks = new InputMarks();
      const latest = new Map<number, number>();
      const seen = new Set<string>();
      for (const given of groups) {
        const { ordered, late, duplicates } = admit(
          marks,
          given.map(([i, t, v]) => [i === 0 ? keepSameTime : i, t, v]),
        );
        expect(ordered.length + late.length + duplicates).toBe(given.length);
        for (const [input = -1, time = -1] of ordered) {
          expect(time).toBeGreaterThan(latest.get(input) ?? -1);
          latest.set(input, time);
        }
        for (const [input = -1, time = -1] of late) expect(time).toBeLessThanOrEqual(latest.get(input) ?? -1);
        for (const [input, time] of [...ordered, ...late]) {
          if (input !== 0) continue;
          expect(seen.has(`${time}`)).toBe(false);
          seen.add(`${time}`);
        }
      }
    }),
    runs(300),
  );
});
