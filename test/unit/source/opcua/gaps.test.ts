import { expect, test } from "vitest";
import { epochMicros } from "../../../../src/core/point.ts";
import type { TagId } from "../../../../src/core/source.ts";
import { type Cause, Gaps, tagGaps } from "../../../../src/source/opcua/history/gaps.ts";

const gap = (key: string, from: number, to: number) => ({
  item: key,
  key,
  from: epochMicros(from),
  to: epochMicros(to),
  causes: new Set(["interruption" as const]),
  valueAtEnd: true,
});

test("repeated overflows of a node make one gap that spans all of them", () => {
  const gaps = new Gaps<string>();
  for (let i = 0; i < 10_000; i++) gaps.add(gap("a", 10 + i, 11 + i));
  gaps.add(gap("b", 5, 6));

  expect(gaps.size).toBe(2);
  expect(gaps.take()).toEqual([gap("a", 10, 10_010), gap("b", 5, 6)]);
  expect(gaps.size).toBe(0);
});

test("a node is complete only when all its gaps are filled, also those opened meanwhile", () => {
  const gaps = new Gaps<string>();
  gaps.add(gap("a", 1, 2));
  gaps.take();
  gaps.add(gap("a", 3, 4));

  expect(gaps.close("a")).toBe(false);
  gaps.take();
  expect(gaps.close("a")).toBe(true);
});

test("an unfilled gap waits again, merged with the one opened meanwhile", () => {
  const gaps = new Gaps<string>();
  gaps.add(gap("a", 1, 2));
  const [taken = gap("a", 0, 0)] = gaps.take();
  gaps.add(gap("a", 5, 6));
  gaps.giveBack(taken);
  expect(gaps.take()).toEqual([gap("a", 1, 6)]);
  expect(gaps.close("a")).toBe(true);
});

test("a gap with two causes is reported with both", () => {
  const gaps = new Gaps<{ tag: TagId; captures: Record<string, string> }>();
  const item = { tag: 0 as TagId, captures: {} };
  const of = (cause: Cause, from: number, to: number) => ({
    item,
    key: "a",
    from: epochMicros(from),
    to: epochMicros(to),
    causes: new Set([cause]),
    valueAtEnd: false,
  });
  gaps.add(of("overflow", 1, 2));
  gaps.add(of("interruption", 3, 4));
  const [both] = gaps.take();
  if (!both) throw new TypeError("there is one");
  expect(tagGaps(both, "filled", "").map(({ cause, from, to }) => [cause, from, to])).toEqual([
    ["interruption", 1, 4],
    ["overflow", 1, 4],
  ]);
});
