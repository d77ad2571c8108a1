import fc from "fast-check";
import { expect, test } from "vitest";
import { epochMicros } from "../../../src/core/point.ts";
import { formatTimestamp, parseTimestamp } from "../../../src/wire/timestamp.ts";
import { runs } from "../../support/property.ts";

test("a formatted time parses to the same microsecond", () => {
  const range = { min: Date.parse("1700-01-01") * 1_000, max: Date.parse("2250-01-01") * 1_000 };
  fc.assert(
    fc.property(fc.integer(range), (micros) => {
      expect(parseTimestamp(formatTimestamp(epochMicros(micros)))).toBe(micros);
    }),
    runs(2_000),
  );
});

test("dates and offsets parse to the same instant as with Date", () => {
  const parts = fc.tuple(
    fc.integer({ min: 1, max: 9_999 }),
    fc.integer({ min: 0, max: 366 * 86_400 }),
    fc.integer({ min: -1_439, max: 1_439 }),
  );
  fc.assert(
    fc.property(parts, ([year, second, offset]) => {
      const date = new Date(0);
      date.setUTCFullYear(year, 0, 1);
      date.setTime(date.getTime() + second * 1_000);
      if (date.getUTCFullYear() > 9_999) return;
      const sign = offset < 0 ? "-" : "+";
      const hours = String(Math.floor(Math.abs(offset) / 60)).padStart(2, "0");
      const text = `${date.toISOString().slice(0, 19)}${sign}${hours}:${String(Math.abs(offset) % 60).padStart(2, "0")}`;
      expect(parseTimestamp(text)).toBe(Date.parse(text) * 1_000);
    }),
    runs(2_000),
  );
});

test.each([
  ["2026-01-02T03:04:05Z", "2026-01-02T03:04:05Z"],
  ["2026-01-02t03:04:05.5z", "2026-01-02T03:04:05.5Z"],
  ["2026-01-02 03:04:05.000010+00:00", "2026-01-02T03:04:05.00001Z"],
  ["2026-01-02T03:04:05.123456789+02:00", "2026-01-02T01:04:05.123456Z"],
  ["1969-12-31T23:59:59.9999999Z", "1969-12-31T23:59:59.999999Z"],
  ["2024-02-29T23:30:00-01:00", "2024-03-01T00:30:00Z"],
  ["0001-01-01T00:00:00Z", "0001-01-01T00:00:00Z"],
])("%s is %s, digits beyond microseconds cut", (text, expected) => {
  expect(formatTimestamp(parseTimestamp(text) ?? epochMicros(Number.NaN))).toBe(expected);
});

// A device or file may contain such a time, and a command that shows it must not fail.
test.each([
  [253_402_300_800_000_000, "10000-01-01T00:00:00Z"],
  [253_402_300_800_500_000, "10000-01-01T00:00:00.5Z"],
  [1.767e18, "57964-01-01T21:20:00Z"],
  [1e22, "316889355-01-25T17:46:40Z"],
  [-62_167_219_200_000_000, "0000-01-01T00:00:00Z"],
])("%d µs is %s, beyond the years of RFC 3339 too", (micros, expected) => {
  expect(formatTimestamp(epochMicros(micros))).toBe(expected);
});

test.each([
  "",
  "2026-01-02",
  "2026-01-02T03:04:05",
  "2026-01-02T03:04Z",
  "2026-01-02T03:04:05.Z",
  "2026-13-02T03:04:05Z",
  "2026-02-29T03:04:05Z",
  "2026-04-31T03:04:05Z",
  "2026-01-02T24:00:00Z",
  "2026-01-02T03:04:60Z",
  "2026-01-02T03:04:05+24:00",
  "2026-01-02T03:04:05+0200",
  "2026-01-02T03:04:05Zx",
  "+026-01-02T03:04:05Z",
  "2026-01-02T03:04:05,5Z",
  "1767323045",
])("%j is no timestamp", (text) => {
  expect(parseTimestamp(text)).toBeUndefined();
});
