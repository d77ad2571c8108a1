import fc from "fast-check";
import { expect, test } from "vitest";
import { RepeatedList } from "../../../src/lib/values/lists.ts";
import { runs } from "../../support/property.ts";

test("each list holds what was added to it, is the one before if equal to it, and never changes afterwards", () => {
  const items = fc.array(fc.constantFrom("a", "b", "c"), { maxLength: 4 });
  fc.assert(
    fc.property(fc.array(items, { minLength: 1, maxLength: 12 }), (lists) => {
      const repeated = new RepeatedList<string>();
      const taken = lists.map((list) => {
        for (const item of list) repeated.add(item);
        expect(repeated.length).toBe(list.length);
        return repeated.take();
      });
      expect(taken).toEqual(lists);
      for (const [i, list] of taken.entries())
        if (i > 0) expect(list === taken[i - 1]).toBe(JSON.stringify(lists[i]) === JSON.stringify(lists[i - 1]));
    }),
    runs(200),
  );
});
