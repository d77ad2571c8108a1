import { expect, test } from "vitest";
import { floatPairs } from "../../../../src/source/modbus/discovery/address-scan.ts";
import { seed } from "../../../support/property.ts";
import { seeded } from "../../../support/runtime.ts";

/** The words of floats, the high word first. */
function wordsOf(...values: readonly number[]): number[] {
  return values.flatMap((value) => {
    const view = new DataView(new ArrayBuffer(4));
    view.setFloat32(0, value);
    return [view.getUint16(0), view.getUint16(2)];
  });
}

test("floats are found in both word orders, between other registers and in sequence", () => {
  const [high = 0, low = 0] = wordsOf(229.81);

  expect([...floatPairs([2301, ...wordsOf(229.81, -17.25), 7])]).toEqual([
    [1, { value: 229.81, order: "abcd" }],
    [3, { value: -17.25, order: "abcd" }],
  ]);
  expect([...floatPairs([2301, low, high, 7])]).toEqual([[1, { value: 229.81, order: "cdab" }]]);
  expect([...floatPairs(wordsOf(50))]).toEqual([[0, { value: 50, order: "abcd" }]]);
});

test("registers with integers are not reported as floats", () => {
  for (const words of [[2301, 2298, 2305], [0, 0], [1, 0, 40_000, 65_535], [17_000, 17_010, 17_020], [17_000], []])
    expect([...floatPairs(words)], words.join()).toEqual([]);
});

test(`nearly all of consecutive measured floats are found at their position, seed ${seed}`, () => {
  const random = seeded(seed);
  const values = Array.from({ length: 1_000 }, () => Math.fround(1 + random() * 1_000));
  let right = 0;
  for (const value of values) {
    const found = floatPairs(wordsOf(value, Math.fround(random() * 500 + 1)));
    if (found.get(0)?.order === "abcd") right++;
  }

  expect(right).toBeGreaterThan(800);
});
