import fc from "fast-check";
import { expect, test } from "vitest";
import { coverage, minimalCover, TopicTrie } from "../../../../src/source/mqtt/topics/topic-trie.ts";
import { runs } from "../../../support/property.ts";

test.each([
  [["a/#", "a/+/x", "a/b", "a"], ["a/#"]],
  [
    ["a/+", "a/b", "a/b/c"],
    ["a/+", "a/b/c"],
  ],
  [
    ["a/+/c", "a/b/+"],
    ["a/+/c", "a/b/+"],
  ],
  [["a", "a"], ["a"]],
  [
    ["#", "$SYS/x", "a/b"],
    ["#", "$SYS/x"],
  ],
  [
    ["+/x", "$SYS/x"],
    ["+/x", "$SYS/x"],
  ],
  [
    ["$share/g/a/#", "$share/g/a/b", "a/b", "$share/h/a/b"],
    ["$share/g/a/#", "a/b", "$share/h/a/b"],
  ],
])("of %j it takes %j to get everything once", (filters, cover) => {
  expect(minimalCover(filters)).toEqual(cover);
});

const level = fc.constantFrom("a", "b", "+", "$x");
const filter = fc
  .tuple(fc.array(level, { maxLength: 3 }), fc.boolean())
  .map(([levels, rest]) => (rest || levels.length === 0 ? [...levels, "#"] : levels).join("/"));
const topic = fc.array(fc.constantFrom("a", "b", "", "$x"), { minLength: 1, maxLength: 4 });

test("the cover matches every topic that the filters match, and no filter of it covers another", () => {
  fc.assert(
    fc.property(fc.array(filter, { maxLength: 8 }), topic, (filters, levels) => {
      const cover = minimalCover(filters);
      expect(matches(cover, levels)).toBe(matches(filters, levels));
      for (const each of cover) expect(coverage(cover.filter((other) => other !== each))(each)).toBe(false);
    }),
    runs(1_000),
  );
});

test("a covered filter matches no topic outside the cover", () => {
  fc.assert(
    fc.property(fc.array(filter, { maxLength: 6 }), filter, topic, (wide, narrow, levels) => {
      if (coverage(wide)(narrow) && matches([narrow], levels)) expect(matches(wide, levels)).toBe(true);
    }),
    runs(1_000),
  );
});

function matches(filters: readonly string[], topicLevels: readonly string[]): boolean {
  const trie = new TopicTrie<true>();
  for (const each of filters) trie.insert(each, true);
  return trie.match(topicLevels.join("/")).length > 0;
}
