import fc from "fast-check";
import { expect, test } from "vitest";
import { float16, float32, shortestDecimal } from "../../../src/lib/values/decimal-text.ts";
import { runs } from "../../support/property.ts";

test("a float is formatted as the shortest decimal that parses to the same float", () => {
  expect(shortestDecimal(Math.fround(0.1), float32)).toBe(0.1);
  expect(shortestDecimal(Math.fround(1e-45), float32)).toBe(1e-45);
  expect(shortestDecimal(Math.f16round(0.1), float16)).toBe(0.1);
  fc.assert(
    fc.property(fc.float({ noNaN: true, noDefaultInfinity: true }), (value) => {
      const decimal = shortestDecimal(value, float32);
      expect(Math.fround(decimal) === value).toBe(true);
      const digits = decimal.toExponential().replace(/e.*/, "").replace(/\D/g, "").length;
      // No shorter decimal has this value as its nearest double.
      for (let fewer = 1; fewer < digits; fewer++)
        expect(Math.fround(Number(value.toPrecision(fewer)))).not.toBe(value);
    }),
    runs(2_000),
  );
});

test("any decimal of up to six digits is preserved by a float32", () => {
  fc.assert(
    fc.property(fc.integer({ min: -999_999, max: 999_999 }), fc.integer({ min: 0, max: 6 }), (digits, places) => {
      const decimal = Number(`${digits}e-${places}`);
      expect(shortestDecimal(Math.fround(decimal), float32)).toBe(decimal);
    }),
    runs(2_000),
  );
});
