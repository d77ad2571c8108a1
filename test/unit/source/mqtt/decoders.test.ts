import fc from "fast-check";
import { expect, test } from "vitest";
import { bareValue } from "../../../../src/source/mqtt/decoders/bare.ts";
import { decoders } from "../../../../src/source/mqtt/decoders/decoder.ts";
import { jsonDocument } from "../../../../src/source/mqtt/decoders/json.ts";
import { numberText } from "../../../../src/source/mqtt/decoders/number.ts";
import { PayloadError } from "../../../../src/source/mqtt/payload-error.ts";

test.each([
  ["21.5", 21.5],
  ["  -3e2\r\n", -300],
  ["\uFEFF+7", 7],
  ["42\0\0", 42],
  [".5", 0.5],
  ["9007199254740993", 9_007_199_254_740_993n],
  ["true", true],
  ["false", false],
  ["ON", "ON"],
  ['"OFF"', "OFF"],
  ["TRUE", "TRUE"],
  ["0x1F", "0x1F"],
  ["", ""],
])("the bare payload %j is %s", (payload, value) => {
  expect(bareValue(Buffer.from(payload))).toBe(value);
});

test.each(["ON", "", "1,5", "0x1F", "1 2", "NaN", "Infinity"])("%j is not a number", (payload) => {
  expect(() => numberText(Buffer.from(payload))).toThrow(PayloadError);
});

test("JSON keeps integers that a double cannot hold, and leaves texts and fractions alone", () => {
  const text = '{"a":9007199254740993,"b":"9007199254740993","c":0.1234567890123456,"d":[-18446744073709551615]}';
  expect(jsonDocument(Buffer.from(text))).toEqual({
    a: 9_007_199_254_740_993n,
    b: "9007199254740993",
    c: 0.1234567890123456,
    d: [-18_446_744_073_709_551_615n],
  });
});

test.each([
  ['{"a":', 'is not JSON: {"a":'],
  ["NaN", "is not JSON: NaN"],
  ["", "is not JSON: "],
  ["\u0001{", "is not JSON: ·{"],
])("%j is malformed, with its beginning in the reason", (payload, reason) => {
  expect(() => jsonDocument(Buffer.from(payload))).toThrow(new PayloadError(reason));
});

test("a nesting of 10,000 levels with a long number in it is read or refused, and nothing worse", () => {
  const payload = Buffer.from(`${"[".repeat(10_000)}12345678901234567${"]".repeat(10_000)}`);
  try {
    jsonDocument(payload);
  } catch (error) {
    expect(error).toBeInstanceOf(PayloadError);
  }
});

test("whatever the bytes are, a decoder returns a value or throws a PayloadError", () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 64 }), (bytes) => {
      for (const decode of Object.values(decoders)) {
        try {
          decode(Buffer.from(bytes));
        } catch (error) {
          expect(error).toBeInstanceOf(PayloadError);
        }
      }
    }),
    { seed: 8, numRuns: 500 },
  );
});

test("every JSON document is read as JSON.parse reads it, long integers excepted", () => {
  fc.assert(
    fc.property(fc.json(), (text) => {
      const rounded = JSON.stringify(jsonDocument(Buffer.from(text)), (_key, value: unknown) =>
        typeof value === "bigint" ? Number(value) : value,
      );
      expect(rounded).toBe(JSON.stringify(JSON.parse(text)));
    }),
    { seed: 9, numRuns: 300 },
  );
});
