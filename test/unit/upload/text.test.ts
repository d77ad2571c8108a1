// Numbers and times as bytes: the same text as JSON.stringify and Date produce, for every double.
import fc from "fast-check";
import { expect, test } from "vitest";
import {
  isWritableTime,
  numberForm,
  scaledNumber,
  TimeWriter,
  textLength,
  timeLength,
  unscaledNumber,
  writeNumber,
} from "../../../src/upload/series/number-text.ts";
import { runs } from "../../support/property.ts";

function numberText(value: number): string {
  const bytes = Buffer.alloc(40, "#");
  const form = numberForm(value);
  const scaled = scaledNumber(value, form);
  writeNumber(bytes, 3, scaled, form);
  const end = 3 + textLength(form);
  expect(unscaledNumber(scaled, form)).toBe(value);
  expect(bytes.toString("latin1", 0, 3) + bytes.toString("latin1", end)).toBe("#".repeat(40 - (end - 3)));
  return bytes.toString("latin1", 3, end);
}

test("any finite double is written as JSON.stringify writes it", () => {
  fc.assert(
    fc.property(fc.double({ noNaN: true, noDefaultInfinity: true }), (value) => {
      expect(numberText(value)).toBe(JSON.stringify(value));
    }),
    runs(8_000),
  );
});

test("decimals as devices send them are written as JSON.stringify writes them", () => {
  fc.assert(
    fc.property(fc.maxSafeInteger(), fc.integer({ min: 0, max: 22 }), (mantissa, decimals) => {
      const value = mantissa / 10 ** decimals;
      expect(numberText(value)).toBe(JSON.stringify(value));
    }),
    runs(8_000),
  );
  fc.assert(
    fc.property(
      fc.integer({ min: -99_999_999, max: 99_999_999 }),
      fc.integer({ min: 0, max: 7 }),
      (mantissa, decimals) => {
        const value = mantissa / 10 ** decimals;
        expect(numberText(value)).toBe(JSON.stringify(value));
      },
    ),
    runs(8_000),
  );
});

test("numbers at the edges of each form are written as JSON.stringify writes them", () => {
  const edges = [
    0,
    1e-7,
    9.99e-7,
    1e-6,
    0.1,
    0.3,
    1,
    9,
    10,
    99,
    100,
    999_999,
    1e6,
    2 ** 31,
    2 ** 32,
    1e15,
    2 ** 53,
    1e21,
    1e22,
  ];
  const near = edges.flatMap((edge) => [edge, edge - 1, edge + 1, edge * 1.1, edge - 1e-6, edge + 1e-6, edge / 3]);
  const extreme = [
    Number.MAX_VALUE,
    Number.MIN_VALUE,
    Number.EPSILON,
    0.1 + 0.2,
    Math.fround(0.1),
    123_456_789.123_456,
  ];
  for (const value of [...near, ...extreme].flatMap((each) => [each, -each])) {
    expect(numberText(value)).toBe(JSON.stringify(value));
  }
});

test("a non-finite number has no text", () => {
  expect([Number.NaN, Infinity, -Infinity].map(numberForm)).toEqual([0, 0, 0]);
});

function trimmed(micros: number): string {
  const milliseconds = Math.floor(micros / 1_000);
  const digits = `${new Date(milliseconds).toISOString().slice(20, 23)}${String(micros - milliseconds * 1_000).padStart(3, "0")}`;
  const fraction = digits.replace(/0+$/, "");
  return `${new Date(milliseconds).toISOString().slice(0, 19)}${fraction && `.${fraction}`}Z`;
}

test("times are written as Date writes them, in microseconds and without needless digits", () => {
  const writer = new TimeWriter();
  const time = fc.tuple(
    fc.integer({ min: -9_000_000_000, max: 9_000_000_000 }),
    fc.integer({ min: 0, max: 999_999 }),
    fc.integer({ min: 0, max: 6 }),
  );
  fc.assert(
    fc.property(time, ([seconds, micros, zeros]) => {
      const value = seconds * 1e6 + Math.floor(micros / 10 ** zeros) * 10 ** zeros;
      const bytes = Buffer.alloc(40);
      const end = writer.write(bytes, 2, value);
      expect(isWritableTime(value)).toBe(true);
      expect(bytes.toString("latin1", 2, end)).toBe(trimmed(value));
      expect(end - 2).toBe(timeLength(value));
    }),
    runs(8_000),
  );
});

test("times that RFC 3339 cannot express are recognised beforehand", () => {
  expect([Number.NaN, Infinity, -1e18, 1e18, 253_402_300_800e6, 0.5].map(isWritableTime)).toEqual([
    false,
    false,
    false,
    false,
    false,
    false,
  ]);
  expect([0, -1, 253_402_300_799_000_000].map(isWritableTime)).toEqual([true, true, true]);
});
