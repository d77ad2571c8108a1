import { expect, test } from "vitest";
import { itemSaveView, signalAttributes, signalSaveView } from "../../../src/wire/signal-view.ts";

test("an empty signal save view has the defaults of the specification", () => {
  expect(signalSaveView.parse({})).toEqual({
    annotations: {},
    type: "numeric",
    description: "",
    labels: {},
    engUnit: "",
    enumValues: {},
    sourceType: "measurement",
    sampleInterval: null,
    gapDetection: null,
  });
});

test("an item save view requires name, type and sourceType, and has the same other defaults", () => {
  expect(itemSaveView.safeParse({}).error?.issues.map(({ path }) => path.join("."))).toEqual([
    "name",
    "type",
    "sourceType",
  ]);
  const item = itemSaveView.parse({ name: "Boiler", type: "enum", sourceType: "prediction" });
  expect(item).toEqual({ ...signalSaveView.parse({}), name: "Boiler", type: "enum", sourceType: "prediction" });
});

test("the attributes of a configuration get no defaults", () => {
  expect(signalAttributes.parse({ engUnit: "°C" })).toEqual({ engUnit: "°C" });
});

test.each([
  [{ annotations: { "a b": "x" } }, ["annotations", "a b"]],
  [{ annotations: { ["k".repeat(129)]: "x" } }, ["annotations", "k".repeat(129)]],
  [{ name: "" }, ["name"]],
  [{ name: "n".repeat(129) }, ["name"]],
  [{ type: "text" }, ["type"]],
  [{ description: "d".repeat(1_001) }, ["description"]],
  [{ labels: { site: "north" } }, ["labels", "site"]],
  [{ labels: { site: [1] } }, ["labels", "site", 0]],
  [{ engUnit: 1 }, ["engUnit"]],
  [{ enumValues: { "10000": "x" } }, ["enumValues", "10000"]],
  [{ enumValues: { "01": "x" } }, ["enumValues", "01"]],
  [{ enumValues: { "-1": "x" } }, ["enumValues", "-1"]],
  [{ enumValues: { "1": "" } }, ["enumValues", "1"]],
  [{ sourceType: "aggregate" }, ["sourceType"]],
  [{ sampleInterval: "P1M" }, ["sampleInterval"]],
  [{ sampleInterval: "-PT1M" }, ["sampleInterval"]],
  [{ gapDetection: "10m" }, ["gapDetection"]],
  [{ unit: "V" }, []],
])("%j is refused at %j", (view, path) => {
  expect(signalSaveView.safeParse(view).error?.issues.map((issue) => issue.path)).toEqual([path]);
});
