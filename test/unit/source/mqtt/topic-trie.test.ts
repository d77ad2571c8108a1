import fc from "fast-check";
import { expect, test } from "vitest";
import { TopicTrie } from "../../../../src/source/mqtt/topics/topic-trie.ts";
import { runs } from "../../../support/property.ts";

test.each([
  ["a/b", "a/b", true],
  ["a/b", "a/c", false],
  ["a/+", "a/b", true],
  ["a/+", "a/", true],
  ["a/+", "a", false],
  ["a/+", "a/b/c", false],
  ["a/#", "a", true],
  ["a/#", "a/b/c", true],
  ["#", "a/b", true],
  ["+/+", "/a", true],
  ["/+", "/a", true],
  ["+", "/a", false],
  ["#", "$SYS/broker", false],
  ["+/broker", "$SYS/broker", false],
  ["$SYS/#", "$SYS/broker", true],
  ["$SYS/+", "$SYS/broker", true],
])("filter %s and topic %s match: %s", (filter, topic, matches) => {
  const trie = new TopicTrie<string>();
  trie.insert(filter, filter);
  expect(trie.match(topic)).toEqual(matches ? [filter] : []);
});

test("finds exactly the filters that match one by one", () => {
  const level = fc.constantFrom("a", "b", "", "$x");
  const filter = fc
    .tuple(fc.array(fc.oneof(level, fc.constant("+")), { maxLength: 4 }), fc.boolean())
    .map(([levels, rest]) => (rest || levels.length === 0 ? [...levels, "#"] : levels));
  const topic = fc.array(level, { minLength: 1, maxLength: 5 });
  fc.assert(
    fc.property(fc.array(filter, { maxLength: 12 }), topic, (filters, levels) => {
      const trie = new TopicTrie<number>();
      filters.forEach((each, i) => trie.insert(each.join("/"), i));
      const expected = filters.flatMap((each, i) => (matchesByTheBook(each, levels) ? [i] : []));
      expect(trie.match(levels.join("/")).toSorted((a, b) => a - b)).toEqual(expected);
    }),
    runs(500),
  );
});

test("a hundred thousand filters are searched no slower than the depth of the topic asks for", () => {
  const trie = new TopicTrie<number>();
  for (let i = 0; i < 100_000; i++) trie.insert(`plant/line${i % 100}/machine${i}/temp`, i);
  trie.insert("plant/+/+/temp", -1);
  expect(trie.match("plant/line7/machine4207/temp")).toEqual([4_207, -1]);
});

function matchesByTheBook(filter: readonly string[], topic: readonly string[]): boolean {
  if (topic[0]?.startsWith("$") && (filter[0] === "+" || filter[0] === "#")) return false;
  for (const [i, level] of filter.entries()) {
    if (level === "#") return topic.length >= i;
    if (i >= topic.length || (level !== "+" && level !== topic[i])) return false;
  }
  return filter.length === topic.length;
}
