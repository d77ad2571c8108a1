import { expect, test } from "vitest";
import { itemResource, signalResource } from "../../../src/service/method/resource-view.ts";
import type { Attributes } from "../../../src/service/store/resource-store.ts";
import { signalSaveView } from "../../../src/wire/signal-view.ts";

const created = { number: 1, createdAt: Date.UTC(2026, 0, 1, 8, 0, 0, 120), updatedAt: Date.UTC(2026, 0, 2) };
const attributes = (name: string, view: object = {}): Attributes => ({ ...signalSaveView.parse(view), name });

test("an item has exactly the members of the current dialect", () => {
  const item = itemResource({
    ...created,
    id: "cbpmaq6rpn52969vfl00",
    visible: true,
    attributes: attributes("Item 33", { gapDetection: "PT960H", annotations: { "a/b": "c" } }),
  });
  expect(item).toEqual({
    id: "cbpmaq6rpn52969vfl00",
    type: "items",
    meta: {
      annotations: { "a/b": "c" },
      attributesHash: "f6d49808e47b5996daf602342b597f2b9fb2c546",
      relationshipsHash: "5f36b2ea290645ee34d943220a14b54ee5ea5be5",
      createdAt: "2026-01-01T08:00:00.12Z",
      updatedAt: "2026-01-02T00:00:00Z",
    },
    attributes: {
      name: "Item 33",
      description: "",
      valueType: "numeric",
      sourceType: "measurement",
      engUnit: "",
      sampleInterval: null,
      gapDetection: "PT960H",
      labels: {},
      enumValues: {},
      visible: true,
    },
    relationships: {},
  });
});

test("a signal names its input, its integration and its item", () => {
  const signal = signalResource({
    ...created,
    id: "cbpmaq6rpn52969vfk70",
    integration: "c8ktonqsahsmemfs7lv0",
    input: "test_signal_39",
    item: null,
    attributes: attributes("Signal 39"),
  });
  expect(signal.meta).toMatchObject({ attributesHash: "7db601f42a56ae88ef93328038578c0119611b9b" });
  expect(signal.relationships).toEqual({
    integration: { data: { type: "integrations", id: "c8ktonqsahsmemfs7lv0" } },
    item: { data: null },
  });
});

test("the hash covers texts with markup, and states in text order", () => {
  const one = attributes("a & <b>", { enumValues: { 9: "nine", 10: "ten" }, labels: { b: ["x"], a: ["y"] } });
  const other = { ...one, enumValues: { 10: "ten", 9: "nine" }, labels: { a: ["y"], b: ["x"] } };
  const hash = (of: Attributes) => itemResource({ ...created, id: "i", visible: false, attributes: of }).meta;
  expect(hash(one)).toEqual(hash(other));
  expect(hash({ ...one, name: "a" })).not.toEqual(hash(one));
});
