// Which quality codes are good: by list, by range, by mask.
import { expect, test } from "vitest";
import { goodCodes, isGood, rangeRemarks } from "../../../../src/source/mqtt/decoders/quality.ts";

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
  ["numbers, however they are written", ["0x00", "192", ""], [0, "0", 192, "0xC0", "192.0", ""], [1, false, true, " "]],
  ["one text", "GOOD", ["GOOD"], ["BAD"]],
])("%s", (_, good, accepted, refused) => {
  for (const code of accepted) expect(isGoodFor(good, code), String(code)).toBe(true);
  for (const code of refused) expect(isGoodFor(good, code), String(code)).toBe(false);
});

test("an empty list of good codes is refused", () => {
  expect(goodCodes().safeParse([]).success).toBe(false);
});

test.each<[unknown, RegExp]>([
  ["0x1FFFFFFFF/0xC0", /more than 32 bits/],
  ["192/99999999999", /more than 32 bits/],
  ["0xC1/0xC0", /bits that are not in its mask/],
  ["0xC0/0", /mask without bits/],
  ["0xZZ/0xC0", /value\/mask in numbers/],
  ["192/0xC0x", /value\/mask in numbers/],
  [["GOOD", "0xFF/0x0F"], /bits that are not in its mask/],
  [[[219, 192]], /no code is in/],
])("a mask or range that cannot be meant is an error: %j", (good, message) => {
  expect(goodCodes().safeParse(good).error?.issues[0]?.message).toMatch(message);
});

test("a text with a slash that does not begin with a number is a code", () => {
  expect(isGoodFor(["n/a", "GOOD/OK"], "n/a")).toBe(true);
});

test.each<[unknown, number]>([
  [[0, 192], 1],
  [[[0, 192]], 0],
  [["0", "192"], 0],
  [[192, 0], 0],
  [[0, 192, 216], 0],
])("two bare numbers that may be two codes are a warning: %j", (good, count) => {
  expect(rangeRemarks({ quality: { good: goodCodes().parse(good) } })).toHaveLength(count);
});
