// What a wrong value would be in other types and orders, for the page of its tag.
import { expect, test } from "vitest";
import type { DriverTag } from "../../../../src/core/driver.ts";
import { modbusTag } from "../../../../src/source/modbus/config/options.ts";
import { decodeRegisters, orders } from "../../../../src/source/modbus/config/registers.ts";
import { modbusDriver } from "../../../../src/source/modbus/driver.ts";

function tag(fields: object): DriverTag<typeof modbusTag> {
  return { ...modbusTag.parse(fields), every: 1_000 };
}

function otherFormats(of: DriverTag<typeof modbusTag>, value: number) {
  return modbusDriver.otherFormats?.(of, value);
}

/** The registers 0x4365 0x8000 hold 229.5. */
const registers = Uint8Array.of(0x43, 0x65, 0x80, 0x00);

test.for(orders)("a float that is read as %s is found in its own order, before what means nothing", (order) => {
  const read = decodeRegisters(registers, 0, { type: "f32", order });
  const value = read.ok ? Number(read.value) : Number.NaN;
  const others = otherFormats(tag({ at: "hr:1 f32", order }), value);
  expect(others?.[0]).toEqual(order === "abcd" ? expect.anything() : { value: 229.5, format: "hr:1 f32 abcd" });
  expect(others).not.toContainEqual(expect.objectContaining({ value }));
});

test("the order of the address comes before that of the tag", () => {
  const others = otherFormats(tag({ at: "hr:1 u32 cdab", order: "badc" }), 0x0001_0002);
  expect(others).toContainEqual({ value: 0x0002_0001, format: "hr:1 u32 abcd" });
});

test("one register has a sign or none, and two orders", () => {
  expect(otherFormats(tag({ at: "ir:7 u16" }), 0xff_fe)).toEqual([
    { value: -2, format: "ir:7 i16 abcd" },
    { value: -257, format: "ir:7 i16 badc" },
    { value: 0xfe_ff, format: "ir:7 u16 badc" },
  ]);
});

test("nothing is guessed where the value does not tell the registers", () => {
  expect(otherFormats(tag({ at: "hr:1 i16", scaleFactor: "hr:2" }), 234.5)).toEqual([]);
  expect(otherFormats(tag({ at: "hr:1 bcd32" }), 1_234)).toEqual([]);
  expect(otherFormats(tag({ at: "co:1" }), 1)).toEqual([]);
});
