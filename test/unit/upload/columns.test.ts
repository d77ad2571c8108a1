// Points that arrive out of order are sent in order. Of several with the same time, the last one is sent.
import fc from "fast-check";
import { expect, test } from "vitest";
import { Columns } from "../../../src/upload/series/point-memory.ts";
import { runs } from "../../support/property.ts";

function sorted(times: readonly number[]): [number, number][] {
  const columns = new Columns();
  columns.reserve(times.length);
  for (const [i, time] of times.entries()) {
    columns.times[i] = time;
    columns.values[i] = i;
    columns.forms[i] = i % 32;
  }
  columns.count = times.length;
  for (const _ of columns.sort());
  return Array.from({ length: columns.count }, (_, i) => {
    expect(columns.forms[i]).toBe(columns.values[i]! % 32);
    return [columns.times[i]!, columns.values[i]!];
  });
}

test("the last value of each time is kept, in ascending order of time", () => {
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 0, max: 40 }), { maxLength: 60 }), (times) => {
      const last = new Map(times.map((time, i) => [time, i]));
      expect(sorted(times)).toEqual([...last].toSorted(([a], [b]) => a - b));
    }),
    runs(300),
  );
});
