// Input IDs of found tags, by template.
import { expect, test } from "vitest";
import { inputFrom, uniqueInput, usualInput } from "../../../src/discover/tags/input-names.ts";

const temp = { path: ["Plant", "Line 1", "Temp"], address: "nsu=urn:plc;s=Temp", tag: { node: "nsu=urn:plc;s=Temp" } };
const meter = { path: ["unit 3", "hr:40 (40041)"], address: "hr:40 u16", tag: { unit: 3, at: "hr:40 u16" } };
const topic = { path: ["a", "b"], address: "a/b", tag: { topic: "a/b", input: "{room}.t" } };

test.for([
  ["{path}", temp, "Plant.Line_1.Temp"],
  ["{source}.{parent}.{name}", temp, "press.Line_1.Temp"],
  ["{path}", meter, "unit3.hr:40"],
  ["meter{unit}.{name}", meter, "meter3.hr:40"],
  ["x y.{path}", topic, "x_y.{room}.t"],
  ["{room}.{name}", topic, "{room}.b"],
] as const)("template %s", ([template, place, input]) => {
  expect(inputFrom(template, { ...place, source: "press" })).toBe(input);
});

test("an Input ID has at most 128 characters, and a second one of the same name gets a number", () => {
  const long = { path: ["a".repeat(100), "b".repeat(100)], address: "", tag: {} };
  expect(inputFrom("{path}.{name}", { ...long, source: "s" })).toHaveLength(128);
  const taken = new Set<string>();
  const usual = usualInput(long);
  expect([uniqueInput(usual, taken), uniqueInput(usual, taken)]).toEqual([usual, `${usual.slice(0, 126)}.2`]);
});
