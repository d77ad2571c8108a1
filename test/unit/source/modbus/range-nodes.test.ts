// The suggested types for the registers of a range that answers.
import { expect, test } from "vitest";
import { rangeNodes } from "../../../../src/source/modbus/discovery/address-scan.ts";

const tagsOf = (values: readonly number[]) =>
  [...rangeNodes({ table: "hr", start: 0, values }, 1)].slice(1).map(({ tag, value }) => [tag["at"], value]);

test("a small negative number is signed", () => {
  expect(tagsOf([42, 0, 0xfff6, 0, 0xf000])).toEqual([
    ["hr:0 u16", 42],
    ["hr:2 i16", -10],
    ["hr:4 i16", -4_096],
  ]);
});

test("a register with a null value is listed without a value, so that it becomes no tag", () => {
  expect(tagsOf([0xffff, 0, 0x8000, 0, 0x7fff])).toEqual([
    ["hr:0 u16", undefined],
    ["hr:2 u16", undefined],
    ["hr:4 u16", undefined],
  ]);
});
