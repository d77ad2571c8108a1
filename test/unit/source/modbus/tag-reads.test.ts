import { expect, test } from "vitest";
import { epochMicros } from "../../../../src/core/point.ts";
import { readingsOf } from "../../../../src/lib/readings/reading-batch.ts";
import { plan } from "../../../../src/source/modbus/config/plan.ts";
import { pollTargets } from "../../../../src/source/modbus/config/tag-reads.ts";
import { modbusDriver } from "../../../../src/source/modbus/driver.ts";
import { decodeBlock } from "../../../../src/source/modbus/polling/readings.ts";
import { type ModbusTagText, modbusConfig } from "../../../support/modbus-source.ts";

const targets = (...tags: readonly ModbusTagText[]) => pollTargets(modbusConfig({ url: "tcp://127.0.0.1" }, tags));
const blocks = (...tags: readonly ModbusTagText[]) =>
  targets(...tags).flatMap(({ spans, limits }) => plan(spans, limits));
const shape = (...tags: readonly ModbusTagText[]) =>
  blocks(...tags).map(({ table, start, count }) => `${table}:${start}+${count}`);
const decoded = (tags: readonly ModbusTagText[], words: readonly number[]) =>
  blocks(...tags).flatMap((block) =>
    readingsOf([
      decodeBlock(block, Uint8Array.from(words.flatMap((word) => [word >> 8, word & 0xff])), epochMicros(0)),
    ]).map(({ value, reason }) => value ?? reason),
  );

test("units, intervals and limits are read separately, each tag once", () => {
  const groups = targets(
    { at: "hr:0" },
    { at: "hr:1", unit: 2 },
    { at: "hr:2", every: 100 },
    { at: "hr:3", maxRegisters: 10 },
    { at: "hr:4" },
  );
  expect(groups.map(({ spans }) => spans.flatMap(({ values }) => values.map(({ tag }) => tag)))).toEqual([
    [0, 4],
    [1],
    [2],
    [3],
  ]);
});

test("a value and its scale factor share a request, however far apart", () => {
  expect(shape({ at: "hr:0 i16", scaleFactor: "hr:60" }, { at: "hr:30", forbid: ["hr:1..20"] })).toEqual([
    "hr:0+61",
    "hr:30+1",
  ]);
  expect(decoded([{ at: "hr:0 i16", scaleFactor: "hr:1" }], [2301, 0xffff])).toEqual([230.1]);
  expect(decoded([{ at: "hr:1 i16", scaleFactor: "hr:0" }], [2, 0xfffe])).toEqual([-200]);
});

test("an invalid scale factor leaves no value", () => {
  const tags = [{ at: "hr:0 i16", scaleFactor: "hr:1" }];
  expect(decoded(tags, [2301, 0x8000])).toEqual(["its scale factor is -32768, beyond ±10"]);
});

test("linked tags share a request", () => {
  expect(shape({ at: "hr:0", atomic: "pair" }, { at: "hr:50", atomic: "pair" }, { at: "hr:100" })).toEqual([
    "hr:0+51",
    "hr:100+1",
  ]);
  expect(
    decoded(
      [
        { at: "hr:0", atomic: "a" },
        { at: "hr:2", atomic: "a" },
      ],
      [1, 2, 3],
    ),
  ).toEqual([1, 3]);
});

test("forbidden registers are not read", () => {
  expect(shape({ at: "hr:0", forbid: ["hr:2"] }, { at: "hr:4", forbid: ["hr:2"] })).toEqual(["hr:0+1", "hr:4+1"]);
  expect(() => modbusDriver.tag.parse({ at: "hr:0", forbid: ["hr:9..2"] })).toThrow(
    "must be a range such as hr:100..109",
  );
});

test("the word order of the device applies when the address has none", () => {
  expect(decoded([{ at: "hr:0 u32", order: "cdab" }], [1, 2])).toEqual([0x2_0001]);
  expect(decoded([{ at: "hr:0 u32 abcd", order: "cdab" }], [1, 2])).toEqual([0x1_0002]);
});
