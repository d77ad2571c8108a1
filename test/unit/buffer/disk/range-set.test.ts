import fc from "fast-check";
import { expect, test } from "vitest";
import { RangeSet } from "../../../../src/buffer/disk/counters/ranges.ts";
import { runs } from "../../../support/property.ts";

test("ranges hold the same numbers as a plain set", () => {
  const step = fc.record({ add: fc.boolean(), from: fc.nat(40), length: fc.nat(12) });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 40 }), fc.nat(40), fc.nat(12), (steps, from, length) => {
      const ranges = new RangeSet();
      const plain = new Set<number>();
      for (const { add, from: start, length: count } of steps) {
        if (add) ranges.add(start, start + count);
        else ranges.remove(start, start + count);
        for (let n = start; n < start + count; n++)
          if (add) plain.add(n);
          else plain.delete(n);
      }
      const asked = Array.from({ length }, (_, i) => from + i);

      expect(ranges.count).toBe(plain.size);
      expect(ranges.covers(from, from + length)).toBe(asked.every((n) => plain.has(n)));
      expect(ranges.touches(from, from + length)).toBe(asked.some((n) => plain.has(n)));
      expect(ranges.countIn(from, from + length)).toBe(asked.filter((n) => plain.has(n)).length);
      expect(ranges.bounds.every((bound, i) => i === 0 || bound > ranges.bounds[i - 1]!)).toBe(true);
    }),
    runs(1_000),
  );
});
