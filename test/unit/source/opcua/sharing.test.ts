// Which tags share a monitored item of the server, also after a reconnect and after tags were added and removed.
import { expect, test } from "vitest";
import {
  alike,
  formerItems,
  itemsIn,
  keyOf,
  monitoredFor,
  restored,
} from "../../../../src/source/opcua/monitoring/subscription-items.ts";
import type { Item } from "../../../../src/source/opcua/nodes/items.ts";
import { opcuaItem } from "../../../support/opcua-item.ts";

const item = (address: string, more: Partial<Item> = {}): Item => ({ ...opcuaItem(), address, ...more });
const element = (index: number) => item(`[${index}]`, { index: [index] });
const addresses = (items: readonly Item[]) => items.map(({ address }) => address);
const key = (one: Item) => keyOf(one, 2);

test("items of one node with the same sampling and filter share a monitored item", () => {
  const slow = item("slow", { every: 1_000 });
  const filtered = item("filtered", { deadband: { kind: "absolute", value: 1 } });
  const stamped = item("stamped", { trigger: "timestamp" });
  const shared = alike([item("a"), slow, element(1), filtered, stamped, item("b", { trigger: "value" })]);
  expect(shared.map(addresses)).toEqual([["a", "[1]", "b"], ["slow"], ["filtered"], ["stamped"]]);
});

test("a kept monitored item serves the tags that it was created for, and a further tag has none", () => {
  const before = monitoredFor([7, 70, key(element(0)), 2], [element(0), element(1), item("whole")]);
  const now = [element(1), element(1), item("whole"), element(2)];
  const { monitored, missing, obsolete, isChanged } = restored([before.entry], now, key);
  expect(addresses(itemsIn(monitored))).toEqual(["[1]", "whole"]);
  expect(monitored[0]?.entry).toEqual([7, 70, key(element(0)), 2, ["[1]", ""]]);
  expect(addresses(missing)).toEqual(["[1]", "[2]"]);
  expect([obsolete, isChanged]).toEqual([[], true]);
});

test("monitored items without tags are obsolete, and unchanged ones are not recorded again", () => {
  const [whole, slow] = [item("whole"), item("slow", { every: 1_000 })];
  const entries = [
    monitoredFor([1, 10, key(whole), 2], [whole]).entry,
    monitoredFor([2, 20, key(slow), 2], [slow]).entry,
  ];
  // The record of a single tag that takes the whole value has no list of parts.
  expect(entries).toEqual([
    [1, 10, key(whole), 2],
    [2, 20, key(slow), 2],
  ]);
  expect(restored(entries, [whole, slow], key)).toMatchObject({ obsolete: [], missing: [], isChanged: false });
  expect(restored(entries, [slow], key)).toMatchObject({ obsolete: [entries[0]], missing: [], isChanged: true });
});

test("the values that a former subscription has kept go to all tags of the node, once", () => {
  const slow = element(3);
  const tags = [element(0), element(1), { ...slow, every: 1_000 }];
  const entries = [
    monitoredFor([1, 10, key(element(0)), 2], [element(0)]).entry,
    monitoredFor([2, 20, key(element(0)), 2], [element(1)]).entry,
    monitoredFor([3, 30, keyOf(item("", { every: 5_000 }), 2), 2], [slow]).entry,
  ];
  const found = formerItems(entries, tags);
  expect([1, 2, 3].map((handle) => addresses(found.get(handle) ?? []))).toEqual([["[0]", "[1]"], ["[3]"], []]);
});
