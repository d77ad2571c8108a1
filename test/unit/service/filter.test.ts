import { expect, test } from "vitest";
import { Faults, RpcFault } from "../../../src/service/call/rpc-fault.ts";
import { parseFilter, signalFields } from "../../../src/service/query/filter.ts";
import type { Signal } from "../../../src/service/store/resource-store.ts";
import { signalSaveView } from "../../../src/wire/signal-view.ts";

function signal(input: string, view: object, createdAt = "2026-01-01T00:00:00Z", item: string | null = null): Signal {
  const attributes = { name: input, ...signalSaveView.parse(view) } as Signal["attributes"];
  const time = Date.parse(createdAt);
  return {
    id: `${input}00000`,
    number: 1,
    integration: "i",
    input,
    item,
    attributes,
    createdAt: time,
    updatedAt: time,
  };
}

const signals = [
  signal("boiler", {
    name: "Boiler 1",
    engUnit: "°C",
    labels: { site: ["north", "roof"] },
    annotations: { "acme/app/a-b": "x" },
  }),
  signal("pump", { name: "Pump", type: "enum", labels: { site: ["south"] } }, "2026-02-01T00:00:00.5Z", "item0"),
  signal("fan", { name: "Fan", description: "top (new)" }, "2026-03-01T00:00:00Z"),
];

function select(filter: unknown): string[] {
  const faults = new Faults();
  const matches = parseFilter(filter, signalFields, "signals.filter", faults);
  faults.throwIfAny();
  return signals.filter(matches).map(({ input }) => input);
}

test.each([
  [null, ["boiler", "pump", "fan"]],
  [{}, ["boiler", "pump", "fan"]],
  [{ name: "Pump" }, ["pump"]],
  [{ name: { $ne: "Pump" } }, ["boiler", "fan"]],
  [{ name: { $in: ["Pump", "Fan", "None"] } }, ["pump", "fan"]],
  [{ name: { $nin: ["Pump", "Fan"] } }, ["boiler"]],
  [{ name: { $in: [] } }, []],
  [{ name: { $regex: "^[BP]" } }, ["boiler", "pump"]],
  [{ description: { $regex: "\\(new\\)" } }, ["fan"]],
  [{ name: { $gte: "F", $lt: "G" } }, ["fan"]],
  [{ name: { $gt: "Fan" } }, ["pump"]],
  [{ name: { $lte: "Boiler 1" } }, ["boiler"]],
  [{ valueType: "enum" }, ["pump"]],
  [{ type: "enum" }, ["pump"]],
  [{ engUnit: "°C" }, ["boiler"]],
  [{ input: { $in: ["fan"] } }, ["fan"]],
  [{ inputId: "fan" }, ["fan"]],
  [{ id: "pump00000" }, ["pump"]],
  [{ item: null }, ["boiler", "fan"]],
  [{ item: { $ne: null } }, ["pump"]],
  [{ item: { $in: [null, "item0"] } }, ["boiler", "pump", "fan"]],
  [{ createdAt: { $gte: "2026-02-01T00:00:00Z" } }, ["pump", "fan"]],
  [{ createdAt: { $gt: "2026-01-01T01:00:00+01:00", $lt: "2026-03-01T00:00:00Z" } }, ["pump"]],
  [{ createdAt: "2026-02-01T00:00:00.500Z" }, ["pump"]],
  [{ updatedAt: { $lt: "2026-01-02T00:00:00Z" } }, ["boiler"]],
  [{ "labels.site": "roof" }, ["boiler"]],
  [{ "labels.site": { $ne: "roof" } }, ["pump", "fan"]],
  [{ "labels.site": { $in: ["south", "north"] } }, ["boiler", "pump"]],
  [{ "labels.site": { $nin: ["south"] } }, ["boiler", "fan"]],
  [{ "labels.site": { $regex: "th$" } }, ["boiler", "pump"]],
  [{ "labels.site": null }, ["fan"]],
  [{ "annotations.acme/app/a-b": "x" }, ["boiler"]],
  [{ $or: [{ name: "Pump" }, { name: "Fan" }] }, ["pump", "fan"]],
  [{ $or: [] }, []],
  [{ $or: null }, ["boiler", "pump", "fan"]],
  [{ $and: [{ "labels.site": "north" }, { "labels.site": "roof" }] }, ["boiler"]],
  [
    { sourceType: "measurement", $or: [{ name: "Pump" }, { $and: [{ name: "Fan" }, { type: "numeric" }] }] },
    ["pump", "fan"],
  ],
])("%j selects %j", (filter, expected) => {
  expect(select(filter)).toEqual(expected);
});

let deep: object = {};
for (let i = 0; i < 20; i++) deep = { $and: [deep] };

test.each([
  [5, "signals.filter"],
  [[], "signals.filter"],
  [{ nope: 1 }, "signals.filter.nope"],
  [{ attributesHash: "x" }, "signals.filter.attributesHash"],
  [{ constructor: "x" }, "signals.filter.constructor"],
  [{ "labels.": "x" }, "signals.filter.labels."],
  [{ $not: {} }, "signals.filter.$not"],
  [{ name: { $like: "x" } }, "signals.filter.name.$like"],
  [{ name: {} }, "signals.filter.name"],
  [{ name: 5 }, "signals.filter.name"],
  [{ name: ["a"] }, "signals.filter.name"],
  [{ name: { $in: "a" } }, "signals.filter.name.$in"],
  [{ name: { $in: ["a", 1] } }, "signals.filter.name.$in.1"],
  [{ name: { $lt: null } }, "signals.filter.name.$lt"],
  [{ name: { $regex: "(" } }, "signals.filter.name.$regex"],
  [{ name: { $regex: 1 } }, "signals.filter.name.$regex"],
  [{ createdAt: { $regex: "2026" } }, "signals.filter.createdAt.$regex"],
  [{ createdAt: { $gte: "yesterday" } }, "signals.filter.createdAt.$gte"],
  [{ createdAt: 5 }, "signals.filter.createdAt"],
  [{ $or: {} }, "signals.filter.$or"],
  [{ $and: [1] }, "signals.filter.$and.0"],
  [deep, `signals.filter${".$and.0".repeat(17)}`],
  [{ $or: Array.from({ length: 1_001 }, () => ({ name: "a" })) }, "signals.filter"],
])("the filter %.60j is refused at %.60s", (filter, path) => {
  let fault: unknown;
  try {
    select(filter);
  } catch (error) {
    fault = error;
  }
  expect(fault).toBeInstanceOf(RpcFault);
  expect(Object.keys((fault as RpcFault).details.params ?? {})).toEqual([path]);
});

test("a regular expression that takes too long over all signals is refused", () => {
  const faults = new Faults();
  const matches = parseFilter({ description: { $regex: "(.{1,30}x){1,20}y" } }, signalFields, "f", faults);
  faults.throwIfAny();
  const long = signal("long", { description: "x".repeat(1_000) });
  const start = performance.now();
  expect(() => {
    for (let i = 0; i < 100_000 && performance.now() - start < 5_000; i++) matches(long);
  }).toThrow(RpcFault);
  expect(performance.now() - start).toBeLessThan(5_000);
});

test("many regular expressions with a large expansion are refused before all of them are compiled", () => {
  const faults = new Faults();
  const $or = Array.from({ length: 900 }, () => ({ name: { $regex: `(?:${"a".repeat(90)}){900}` } }));
  parseFilter({ $or }, signalFields, "f", faults);
  const said = ["has too many repetitions", "the regular expressions of this filter take too long"];
  expect(() => faults.throwIfAny()).toThrow(
    expect.objectContaining({
      details: {
        params: expect.objectContaining({ "f.$or.0.name.$regex": [said[0]], "f.$or.9.name.$regex": [said[1]] }),
      },
    }),
  );
});
