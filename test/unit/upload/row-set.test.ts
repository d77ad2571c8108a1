// The set of times of a frame behaves as a Set does, also when it is reused.
import fc from "fast-check";
import { expect, test } from "vitest";
import { RowSet } from "../../../src/upload/packing/shared-times.ts";
import { finished } from "../../support/packing.ts";
import { runs } from "../../support/property.ts";

test("the set holds exactly the rows added since it was cleared", () => {
  const rows = new RowSet();
  const times = fc.array(fc.oneof(fc.integer({ min: 0, max: 9_000 }), fc.maxSafeInteger()), { maxLength: 3_000 });
  fc.assert(
    fc.property(times, times, (added, asked) => {
      rows.clear();
      const set = new Set<number>();
      for (const time of added) {
        finished(rows.reserve(rows.size + 1));
        expect(rows.has(time)).toBe(set.has(time));
        rows.add(Float64Array.of(time), 0, 1);
        expect(rows.size).toBe(set.add(time).size);
      }
      for (const time of asked) expect(rows.has(time)).toBe(set.has(time));
      expect([...finished(rows.sorted())]).toEqual([...set].toSorted((a, b) => a - b));
    }),
    runs(60),
  );
});
