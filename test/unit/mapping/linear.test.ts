// Scale and offset: decimals stay exact, and integers of any size are rounded once.
import fc from "fast-check";
import { expect, test } from "vitest";
import { Linear } from "../../../src/lib/values/linear.ts";
import { runs } from "../../support/property.ts";

test("a scale of a power of ten leaves no binary rounding error", () => {
  expect(new Linear(0.1, 0).apply(3)).toBe(0.3);
  expect(new Linear(0.01, 0).apply(1_999)).toBe(19.99);
  expect(new Linear(0.001, -273.15).apply(298_150)).toBe(25);
  expect(new Linear(0.1, 0.2).apply(1)).toBe(0.3);
  expect(new Linear(1.1, 0).apply(1.1)).toBe(1.21);
});

test("an offset alone keeps decimals as well", () => {
  expect(new Linear(1, -0.1).apply(0.3)).toBe(0.2);
  expect(new Linear(1, 0.1).apply(0.2)).toBe(0.3);
});

test("scale 1 and offset 0 change nothing, whatever the value", () => {
  fc.assert(
    fc.property(fc.double(), (value) => {
      expect(new Linear(1, 0).apply(value)).toBe(value);
    }),
    runs(100),
  );
});

/** Computes value × scale + offset in integers, and parses the resulting decimal. */
function exactly(digits: number, places: number, scale: string, offset: string): number {
  const decimal = (text: string) => {
    const [whole = "", fraction = ""] = text.split(".");
    return { digits: BigInt(whole + fraction), places: fraction.length };
  };
  const s = decimal(scale);
  const o = decimal(offset);
  const all = Math.max(places + s.places, o.places);
  const sum =
    BigInt(digits) * s.digits * 10n ** BigInt(all - places - s.places) + o.digits * 10n ** BigInt(all - o.places);
  return Number(`${sum}e-${all}`);
}

test("scaled decimals of usual size equal the exact decimal result", () => {
  const scales = ["0.1", "0.01", "0.001", "10", "0.5", "2.5", "0.0625", "-0.1", "1"];
  const offsets = ["0", "-40", "0.5", "273.15", "-0.001"];
  fc.assert(
    fc.property(
      fc.integer({ min: -10_000_000, max: 10_000_000 }),
      fc.integer({ min: 0, max: 3 }),
      fc.constantFrom(...scales),
      fc.constantFrom(...offsets),
      (digits, places, scale, offset) => {
        const value = Number(`${digits}e-${places}`);
        const result = new Linear(Number(scale), Number(offset)).apply(value);
        expect(result + 0).toBe(exactly(digits, places, scale, offset) + 0);
      },
    ),
    runs(2_000),
  );
});

test("scales that are not a short decimal use plain arithmetic", () => {
  expect(new Linear(1 / 3, 0).apply(2)).toBe(2 / 3);
  expect(new Linear(0.1, 0).apply(Math.PI)).toBe(Math.PI * 0.1);
  expect(new Linear(1e300, 0).apply(1e300)).toBe(Number.POSITIVE_INFINITY);
  expect(new Linear(1e-300, 0).apply(1e-300)).toBe(0);
});

test("an integer beyond 2^53 is rounded once and reported", () => {
  const same = new Linear(1, 0);
  expect(same.applyInteger(2n ** 53n)).toEqual({ value: 2 ** 53, exact: true });
  expect(same.applyInteger(2n ** 53n + 1n)).toEqual({ value: 2 ** 53, exact: false });
  expect(same.applyInteger(-(2n ** 63n))).toEqual({ value: -(2 ** 63), exact: true });
});

test("an energy counter in mWh is scaled before it is rounded", () => {
  expect(new Linear(0.001, 0).applyInteger(9_007_199_254_740_993n).value).toBe(Number("9007199254740.993"));
  expect(new Linear(1e-6, 0).applyInteger(12_345_678_901_234_567_890n).value).toBe(Number("12345678901234.56789"));
});
