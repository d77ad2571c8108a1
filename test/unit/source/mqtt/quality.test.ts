// Which codes are good: as listed, in a range, by a mask.
import { expect, test } from "vitest";
import { goodCodes, isGood } from "../../../../src/source/mqtt/decoders/quality.ts";

const isGoodFor = (good: unknown, code: unknown) => isGood(code, goodCodes().parse(good));

test.each<[string, unknown, readonly unknown[], readonly unknown[]]>([
  ["a list of codes", ["GOOD", 192, true], ["GOOD", 192, "192", true], ["good", 0, false, 191]],
  [
    "two ascending numbers are a range",
    [0, 0x00960000],
    [0, 0x00960000, 0x002d0000, "0"],
    [0x00960001, 0x80340000, -1, "GOOD", true],
  ],
  [
    "a mask",
    "0x00000000/0xC0000000",
    [0, 0x00960000, "9830400"],
    [0x40000000, 0x80000000, 2150694912, -2147483648, "Good", null],
  ],
  ["a mask in decimal", "192/192", [192, 216, 255], [64, 0]],
  ["a list of masks, ranges and codes", [[10, 19], "0x80/0x80", 3], [10, 19, 0x80, 3], [9, 20, 4]],
  ["two numbers that descend are codes", [192, 0], [192, 0], [100]],
  ["one text", "GOOD", ["GOOD"], ["BAD"]],
])("%s", (_, good, accepted, refused) => {
  for (const code of accepted) expect(isGoodFor(good, code), String(code)).toBe(true);
  for (const code of refused) expect(isGoodFor(good, code), String(code)).toBe(false);
});

test("nothing at all is no list of good codes", () => {
  expect(goodCodes().safeParse([]).success).toBe(false);
});
