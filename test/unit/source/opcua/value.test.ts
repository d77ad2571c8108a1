import fc from "fast-check";
import { LocalizedText } from "node-opcua-client";
import { expect, test } from "vitest";
import { convert } from "../../../../src/source/opcua/types/value.ts";
import { runs } from "../../../support/property.ts";

const scalar = (dataType: number, value: unknown) => convert({ dataType, arrayType: 0, value });

test.each([
  ["Boolean", 1, true, true],
  ["SByte", 2, -128, -128],
  ["UInt32", 7, 4_294_967_295, 4_294_967_295],
  ["Int64 below zero", 8, [0xffff_ffff, 0xffff_fff6], -10n],
  ["Int64 at its end", 8, [0x7fff_ffff, 0xffff_ffff], 9_223_372_036_854_775_807n],
  ["UInt64 at its end", 9, [0xffff_ffff, 0xffff_ffff], 18_446_744_073_709_551_615n],
  ["Float", 10, Math.fround(0.1), 0.1],
  ["Double", 11, 0.1, 0.1],
  ["String", 12, "open", "open"],
  ["DateTime", 13, new Date("2026-03-01T00:00:00Z"), Date.UTC(2026, 2, 1)],
  ["StatusCode", 19, { name: "BadTimeout" }, "BadTimeout"],
  ["QualifiedName", 20, { name: "Auto", namespaceIndex: 2 }, "Auto"],
  ["LocalizedText", 21, { text: "offen", locale: "de" }, "offen"],
])("%s becomes one value", (_name, dataType, value, expected) => {
  expect(scalar(dataType, value)).toEqual({ value: expected });
});

test.each([
  ["nothing", 0, null, "no value"],
  ["an empty string's absence", 12, null, "no value"],
  ["a LocalizedText without a text, as servers send an empty one", 21, new LocalizedText({ locale: "de" }), "no value"],
  ["bytes", 15, Buffer.from("x"), "a ByteString cannot be stored"],
  ["a structure", 22, {}, "a structure cannot be stored; name a field of it"],
  ["a structure with an empty text", 22, { text: null }, "a structure cannot be stored; name a field of it"],
  ["a time that means never", 13, new Date("1601-01-01T00:00:00Z"), "no time: it was never set"],
])("%s is no value, with its reason", (_name, dataType, value, reason) => {
  expect(scalar(dataType, value)).toEqual({ reason });
});

test("an element of an array is a value", () => {
  expect(convert({ dataType: 11, arrayType: 1, value: [1, 2] })).toEqual({
    reason: "an array, not one value; give an index",
  });
  const values = { dataType: 10, arrayType: 1, value: new Float32Array([0.1, 0.2]) };
  expect(convert(values, [1])).toEqual({ value: 0.2 });
  expect(convert(values, [2])).toEqual({ reason: "the array has no element 2" });
  expect(
    convert(
      {
        dataType: 8,
        arrayType: 1,
        value: [
          [0, 1],
          [0, 2],
        ],
      },
      [1],
    ),
  ).toEqual({ value: 2n });
  expect(convert({ dataType: 11, arrayType: 0, value: 5 }, [0])).toEqual({ reason: "not an array of one dimension" });
  expect(convert({ dataType: 11, arrayType: 2, value: [1, 2, 3, 4], dimensions: [2, 2] }, [0])).toEqual({
    reason: "not an array of one dimension",
  });
});

test("an element of a matrix is a value, and one out of range is not", () => {
  const lengths = fc.array(fc.integer({ min: 1, max: 4 }), { minLength: 2, maxLength: 4 });
  fc.assert(
    fc.property(lengths, fc.infiniteStream(fc.nat(5)), (dimensions, numbers) => {
      const index = dimensions.map(() => numbers.next().value);
      const inside = index.every((i, axis) => i < (dimensions[axis] ?? 0));
      // Each element contains its own index.
      const all = dimensions.reduce<string[]>(
        (rows, length) => rows.flatMap((row) => Array.from({ length }, (_, i) => `${row}${i},`)),
        [""],
      );
      const found = convert({ dataType: 12, arrayType: 2, value: all, dimensions }, index);
      expect(found).toEqual(
        inside ? { value: index.map((i) => `${i},`).join("") } : { reason: `the array has no element ${index.join()}` },
      );
    }),
    runs(300),
  );
});
