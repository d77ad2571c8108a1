import fc from "fast-check";
import { expect, test } from "vitest";
import { formatRfcDuration, parseRfcDuration } from "../../../src/wire/rfc-duration.ts";
import { runs } from "../../support/property.ts";

test("a formatted duration parses to the same value", () => {
  fc.assert(
    fc.property(fc.maxSafeInteger(), (micros) => {
      expect(parseRfcDuration(formatRfcDuration(micros))).toEqual({ months: 0, micros });
    }),
    runs(1_000),
  );
});

test.each([
  ["PT15M", "PT15M"],
  ["P0DT0H0M30.000000S", "PT30S"],
  ["P1DT12H0M0.000000S", "PT36H"],
  ["P40D", "PT960H"],
  ["P2W", "PT336H"],
  ["pt1.5s", "PT1.5S"],
  ["PT1,25S", "PT1.25S"],
  ["PT90S", "PT1M30S"],
  ["-PT1H", "-PT1H"],
  ["PT", "PT0S"],
  ["P1DT", "PT24H"],
])("%s is echoed as %s", (text, expected) => {
  expect(formatRfcDuration(parseRfcDuration(text)?.micros ?? Number.NaN)).toBe(expected);
});

test.each([
  ["P1Y3M", 15, 0],
  ["-P1M", -1, 0],
  ["P1M1D", 1, 86_400e6],
])("%s is %i months and %i microseconds", (text, months, micros) => {
  expect(parseRfcDuration(text)).toEqual({ months, micros });
});

test.each(["", "1h", "PT1.5M", "P1H", "PT1D", "P-1D", "PT5M3H", "P99999999999999W", `P${"0".repeat(200)}D`, "window"])(
  "%j is no duration",
  (text) => {
    expect(parseRfcDuration(text)).toBeUndefined();
  },
);
