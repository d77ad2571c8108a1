import { expect, test } from "vitest";
import { opcuaOptions } from "../../../../src/source/opcua/config/options.ts";
import { groupFor, planGroups, publishingFor } from "../../../../src/source/opcua/publishing/publishing-group.ts";

const options = (more: object = {}) => opcuaOptions.parse({ url: "opc.tcp://plc", ...more });
const keys = (everyMs: number[], limit = 0, more = {}) =>
  planGroups(options(more), everyMs, limit).map(({ key }) => key);

test("a tag is published at least as often as it is sampled, at one of few intervals", () => {
  const intervals = [50, 100, 249, 250, 600, 1_000, 60_000].map((every) => publishingFor(options(), every));
  expect(intervals).toEqual([100, 100, 100, 250, 500, 1_000, 1_000]);
  expect(publishingFor(options({ subscription: { publishing: "3s" } }), 50)).toBe(3_000);
});

test("tags of one interval share a subscription, the fastest first", () => {
  expect(keys([1_000, 100, 60_000, 120])).toEqual(["100", "1000"]);
  expect(keys([])).toEqual(["1000"]);
  expect(keys([50, 10_000], 0, { subscription: { publishing: "200ms" } })).toEqual(["200"]);
});

test("a full subscription is followed by another, up to ten", () => {
  expect(keys([1_000, 1_000, 1_000, 100], 2)).toEqual(["100", "1000", "1000/2"]);
  expect(keys(Array(50).fill(1_000), 1)).toHaveLength(10);
});

test("an item goes to the slowest group that is fast enough, the emptier of two, or the fastest if all are too slow", () => {
  const group = (publishingMs: number, items = 0) => ({ publishingMs, items });
  const groups = [group(100), group(1_000, 5), group(1_000, 4)];
  expect(groupFor(groups, 500)).toBe(groups[0]);
  expect(groupFor(groups, 1_000)).toBe(groups[2]);
  expect(groupFor(groups.slice(1), 100)).toBe(groups[2]);
  expect(groupFor([], 100)).toBeUndefined();
});
