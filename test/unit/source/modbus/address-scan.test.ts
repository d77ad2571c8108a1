import { expect, test } from "vitest";
import { type AnsweringRange, scanAddresses } from "../../../../src/source/modbus/discovery/address-scan.ts";

/**
 * Scans addresses 0 to 399 of a device that refuses the ranges for which `isRefused` is true. Returns the result and
 * the requests.
 */
async function surveyed(isRefused: (start: number, count: number) => boolean) {
  const asked: (readonly [start: number, count: number])[] = [];
  const found: AnsweringRange[] = [];
  const read = async (_table: string, start: number, count: number) => {
    asked.push([start, count]);
    return isRefused(start, count) ? undefined : Array.from({ length: count }, (_, i) => start + i);
  };
  for await (const range of scanAddresses(read, { table: "hr", from: 0, to: 400, block: 100, smallest: 6 }))
    found.push(range);
  return { asked, found };
}

test("a device that allows fewer registers gets requests of that length once it is known", async () => {
  const { asked, found } = await surveyed((_start, count) => count > 20);

  expect(found).toEqual([{ table: "hr", start: 0, values: Array.from({ length: 400 }, (_, i) => i) }]);
  expect(asked.filter(([, count]) => count > 20)).toHaveLength(3);
});

test("a range is found as soon as it ends, not after the refused addresses behind it", async () => {
  let asked = 0;
  const read = async (_table: string, start: number, count: number) => {
    asked++;
    return start + count > 10 ? undefined : Array.from({ length: count }, () => 7);
  };
  const found = scanAddresses(read, { table: "hr", from: 0, to: 65_000, block: 100, smallest: 1 });
  expect((await found.next()).value).toEqual({ table: "hr", start: 0, values: Array.from({ length: 10 }, () => 7) });
  expect(asked).toBeLessThan(20);
  await found.return(undefined);
});

test("holes are not mistaken for a length limit", async () => {
  const { asked, found } = await surveyed((start, count) => start < 120 && start + count > 100);

  expect(found.map(({ start, values }) => [start, values.length])).toEqual([
    [0, 100],
    [expect.any(Number), expect.any(Number)],
  ]);
  expect(asked.slice(-2)).toEqual([
    [200, 100],
    [300, 100],
  ]);
});
