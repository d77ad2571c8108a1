import fc from "fast-check";
import { expect, test } from "vitest";
import { PayloadError } from "../../../../src/source/mqtt/decoders/payload.ts";
import { bytesField, readStruct } from "../../../../src/source/mqtt/decoders/struct.ts";
import { runs } from "../../../support/property.ts";

const read = (found: unknown, field: object) => readStruct(found, bytesField.parse(field));

test.each([
  [{ type: "u8" }, 0x81],
  [{ type: "i8" }, -127],
  [{ type: "u16" }, 0x8102],
  [{ type: "u16", order: "dcba" }, 0x0281],
  [{ type: "i24" }, -8_322_557],
  [{ type: "u24" }, 0x810203],
  [{ type: "u32" }, 0x81020304],
  [{ type: "u32", order: "dcba" }, 0x04030281],
  [{ type: "u32", order: "cdab" }, 0x03048102],
  [{ type: "u32", order: "badc" }, 0x02810403],
  [{ type: "u64", order: "dcba" }, 0x0807060504030281n],
  [{ type: "u16", at: 6 }, 0x0708],
  [{ type: "bit", bit: 0 }, true],
  [{ type: "bit", bit: 1 }, false],
  [{ type: "bit", bit: 7 }, true],
  [{ type: "u16", bits: { from: 8, count: 4 } }, 1],
  [{ type: "u16", bits: { from: 12, count: 4 } }, 8],
])("81 02 03 04 05 06 07 08 as %j", (field, value) => {
  expect(read(Buffer.from("8102030405060708", "hex"), field)).toBe(value);
  expect(read("81:02-03 04 05060708", field)).toBe(value);
  expect(read("gQIDBAUGBwg=", { ...field, from: "base64" })).toBe(value);
});

test("a 32-bit float is the shortest decimal that parses to the same float", () => {
  const bytes = Buffer.alloc(4);
  fc.assert(
    fc.property(fc.float({ noNaN: true }), (value) => {
      bytes.writeFloatBE(value);
      expect(Math.fround(Number(read(bytes, { type: "f32" })))).toBe(value + 0);
    }),
    runs(500),
  );
  bytes.writeFloatBE(0.1);
  expect(read(bytes, { type: "f32" })).toBe(0.1);
});

test.each([
  ["0102", { type: "u32" }, "has 2 bytes, too few for u32 at 0"],
  ["0102", { type: "u8", length: 3 }, "has 2 bytes, not 3"],
  ["01x2", { type: "u8" }, "is not hex: 01x2"],
  ["012", { type: "u8" }, "is not hex: 012"],
  ["a*", { type: "u8", from: "base64" }, "is not base64: a*"],
  [7, { type: "u8" }, "has no text where bytes should be"],
])("%j as %j is malformed", (found, field, reason) => {
  expect(() => read(found, field)).toThrow(new PayloadError(reason));
});
