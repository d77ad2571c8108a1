// Durations and long values in the output of commands.
import { expect, test } from "vitest";
import { cut, span } from "../../../src/cli/terminal/text.ts";

test.each([
  [-3, "0ms"],
  [999.4, "999ms"],
  [1_500, "1.5s"],
  [9_940, "9.9s"],
  [59_999.9, "59s"],
  [90_500, "1m30s"],
  [3_605_000, "1h"],
  [86_399_999, "23h59m"],
  [86_400_000 + 59 * 60_000, "1d"],
  [15 * 86_400_000 + 7_260_000, "15d2h"],
])("a duration of %d ms is shown in its two largest units: %s", (ms, shown) => {
  expect(span(ms)).toBe(shown);
});

test("a value longer than 40 characters is cut, and a mark says so", () => {
  expect(cut("x".repeat(40))).toBe("x".repeat(40));
  expect(cut("x".repeat(41))).toBe(`${"x".repeat(40)}…`);
});
