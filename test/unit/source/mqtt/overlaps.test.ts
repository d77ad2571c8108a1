import fc from "fast-check";
import { expect, test } from "vitest";
import type { TagId } from "../../../../src/core/source.ts";
import {
  filterParts,
  identifierOf,
  minimalCover,
  overlappingFilters,
  SubscriptionCopies,
  TopicTrie,
} from "../../../../src/source/mqtt/topics/topic-trie.ts";
import { runs } from "../../../support/property.ts";

test.each([
  [
    ["a/+/c", "a/b/+", "x"],
    ["a/+/c", "a/b/+"],
  ],
  [
    ["+/b", "a/#"],
    ["+/b", "a/#"],
  ],
  [
    ["a/#", "+"],
    ["a/#", "+"],
  ],
  [["a/+", "a/b/+"], []],
  [
    ["#", "$SYS/#", "+/x"],
    ["#", "+/x"],
  ],
  [["+/x", "$SYS/x"], []],
  [
    ["#", "a/$b"],
    ["#", "a/$b"],
  ],
  [
    ["$share/g/a/#", "a/b", "$share/h/c"],
    ["$share/g/a/#", "a/b"],
  ],
])("of %j the filters %j share topics with another one", (filters, expected) => {
  expect([...overlappingFilters(filters)]).toEqual(expected);
});

const level = fc.constantFrom("a", "b", "+", "$x");
const filter = fc
  .tuple(fc.constantFrom("", "", "$share/g/"), fc.array(level, { maxLength: 3 }), fc.boolean())
  .map(([group, levels, rest]) => group + (rest || levels.length === 0 ? [...levels, "#"] : levels).join("/"));
const filters = fc.array(filter, { minLength: 1, maxLength: 5 });
const topics = ["a", "b", "", "$x"].flatMap((one) => [
  one,
  ...["a", "b", "$x"].flatMap((two) => [`${one}/${two}`, `${one}/${two}/a`]),
]);

function matches(of: string, topic: string): boolean {
  const trie = new TopicTrie<true>();
  trie.insert(filterParts(of).pattern, true);
  return trie.match(topic).length > 0;
}

test("filters overlap where a topic matches both", () => {
  fc.assert(
    fc.property(filters, (all) => {
      const distinct = [...new Set(all)];
      const overlapping = overlappingFilters(distinct);
      for (const one of distinct) {
        const shares = topics.some((topic) =>
          distinct.some((other) => other !== one && matches(one, topic) && matches(other, topic)),
        );
        // Longer topics than those tried here may match both, too.
        if (shares) expect(overlapping).toContain(one);
      }
    }),
    runs(500),
  );
});

/** The copies that a broker sends: one for each filter, marked if it overlaps another. */
function copiesOf(topic: string, cover: readonly string[]): readonly (readonly number[] | undefined)[] {
  const marked = overlappingFilters(cover);
  return cover
    .filter((each) => matches(each, topic))
    .map((each) => (marked.has(each) ? [identifierOf(each)] : undefined));
}

function timesRead(tags: readonly string[], copies: SubscriptionCopies, topic: string, cover: readonly string[]) {
  const sent = copiesOf(topic, cover);
  return tags.map((tag, id) =>
    // a TagId is the index of its tag
    matches(tag, topic) ? sent.filter((of) => of === undefined || copies.isFor(id as TagId, of)).length : 0,
  );
}

test("a message that several filters match is read once by each of its tags, before and after the answers", () => {
  fc.assert(
    fc.property(filters, fc.constantFrom(...topics), (tags, topic) => {
      const cover = minimalCover(tags);
      const resumed = new SubscriptionCopies((id) => tags[id] ?? "");
      resumed.granted(cover);
      const once = tags.map((tag) => (matches(tag, topic) ? 1 : 0));
      expect(timesRead(tags, resumed, topic, cover)).toEqual(once);
      resumed.granted(cover);
      expect(timesRead(tags, resumed, topic, cover)).toEqual(once);
    }),
    runs(1_000),
  );
});

test("a message that the broker kept for the filters of an earlier configuration is lost to no tag", () => {
  fc.assert(
    fc.property(filters, filters, fc.constantFrom(...topics), (before, tags, topic) => {
      const former = minimalCover(before);
      const cover = minimalCover(tags);
      const copies = new SubscriptionCopies((id) => tags[id] ?? "");
      copies.granted(former);
      copies.granted(cover);
      const wasCovered = (tag: string) => minimalCover([...former, tag]).every((each) => former.includes(each));
      const read = timesRead(tags, copies, topic, former);
      for (const [id, tag] of tags.entries())
        if (matches(tag, topic) && wasCovered(tag)) expect(read[id]).toBeGreaterThan(0);
    }),
    runs(1_000),
  );
});

test("identifiers are valid, and depend on the filter only", () => {
  expect(identifierOf("a/+")).toBe(identifierOf("a/+"));
  for (const each of ["", "a", "a/#", "$share/g/a"]) {
    expect(identifierOf(each)).toBeGreaterThanOrEqual(1);
    expect(identifierOf(each)).toBeLessThan(2 ** 28);
  }
});
