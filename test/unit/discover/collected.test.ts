// What a device without a tree has given so far, for a page that lists it.
import { expect, test } from "vitest";
import type { BrowsedNode } from "../../../src/core/commissioning.ts";
import { collect } from "../../../src/discover/device/collected.ts";
import { eventually } from "../../support/eventually.ts";

const { signal } = new AbortController();
const all = { search: [], first: 0, count: 1 };

async function* nodes(count: number, failure?: Error): AsyncGenerator<BrowsedNode> {
  for (let i = 0; i < count; i++)
    yield { address: `hr:${i}`, name: `n${i}`, depth: 0, value: i, signal: {}, tag: { at: `hr:${i}` } };
  if (failure) throw failure;
}

test.for<[number, number, readonly string[], Error?]>([
  [20_000, 20_000, []],
  [20_003, 20_000, ["3 more were found and are not listed"]],
  [2, 2, ["the search ended early: gone"], new Error("gone")],
])("of %d nodes %d are listed: %j", async ([found, listed, notes, failure]) => {
  await using explorer = collect(nodes(found, failure), new AbortController());
  const list = await eventually(async () => {
    const now = await explorer.list(all, signal);
    return !now.busy && now;
  });
  expect([list.total, list.notes]).toEqual([listed, notes]);
});
