// Numbers as the page shows them: every digit, and nothing but digits.
import fc from "fast-check";
import { expect, test } from "vitest";
import { runs } from "../../support/property.ts";

const script = new URL("../../../src/web/page/format.js", import.meta.url);
const { value }: { value: (number: number) => string } = await import(script.href);

test.each([
  [77_368_016.4, "77,368,016.4"],
  [-1_234.5, "-1,234.5"],
  [0.1, "0.1"],
  [1_234_567, "1,234,567"],
  [999, "999"],
  [0.0001234567, "0.0001234567"],
  [1e-7, "1e-7"],
  [1.5e300, "1.5e+300"],
])("%s is shown as %s", (number, text) => {
  expect(value(number)).toBe(text);
});

test("the shown number equals the value", () => {
  fc.assert(
    fc.property(fc.double({ noNaN: true, noDefaultInfinity: true }), (number) => {
      expect(Number(value(number + 0).replaceAll(",", ""))).toBe(number + 0);
    }),
    runs(100),
  );
});
