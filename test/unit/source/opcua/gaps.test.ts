import { expect, test } from "vitest";
import { epochMicros } from "../../../../src/core/point.ts";
import { Gaps } from "../../../../src/source/opcua/gaps.ts";

const gap = (key: string, from: number, to: number) => ({
  item: key,
  key,
  from: epochMicros(from),
  to: epochMicros(to),
  overflow: false,
  valueAtEnd: true,
});

test("however often values of a node are thrown away, one gap waits, and it spans them all", () => {
  const gaps = new Gaps<string>();
  for (let i = 0; i < 10_000; i++) gaps.add(gap("a", 10 + i, 11 + i));
  gaps.add(gap("b", 5, 6));

  expect(gaps.size).toBe(2);
  expect(gaps.take()).toEqual([gap("a", 10, 10_010), gap("b", 5, 6)]);
  expect(gaps.size).toBe(0);
});

test("a node is complete only when every one of its gaps is filled, also those that opened meanwhile", () => {
  const gaps = new Gaps<string>();
  gaps.add(gap("a", 1, 2));
  gaps.take();
  gaps.add(gap("a", 3, 4));

  expect(gaps.close("a")).toBe(false);
  gaps.take();
  expect(gaps.close("a")).toBe(true);
});

test("a gap that could not be filled waits again, as one with what has opened meanwhile", () => {
  const gaps = new Gaps<string>();
  gaps.add(gap("a", 1, 2));
  const [taken = gap("a", 0, 0)] = gaps.take();
  gaps.add(gap("a", 5, 6));
  gaps.giveBack(taken);
  expect(gaps.take()).toEqual([gap("a", 1, 6)]);
  expect(gaps.close("a")).toBe(true);
});
