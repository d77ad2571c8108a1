import { expect, test } from "vitest";
import type { EpochMicros, InputId } from "../../../src/core/point.ts";
import { epochMicros } from "../../../src/core/point.ts";
import { compare, lastLine } from "../../../src/demo/comparison.ts";

const id = (text: string) => text as InputId; // the texts in this file are Input IDs
const delivered = (values: Readonly<Record<string, readonly number[]>>) =>
  new Map(Object.entries(values).map(([input, list]) => [id(input), new Set(list)] as const));
/** Stored times by input and value. */
const stored = (values: Readonly<Record<string, Readonly<Record<string, readonly number[]>>>>) =>
  new Map(
    Object.entries(values).map(
      ([input, list]) =>
        [
          id(input),
          new Map<number, EpochMicros[]>(
            Object.entries(list).map(([value, times]) => [Number(value), times.map(epochMicros)] as const),
          ),
        ] as const,
    ),
  );

test("every value stored once is exact", () => {
  const comparison = compare(delivered({ a: [1, 2], b: [1] }), stored({ a: { 1: [10], 2: [20] }, b: { 1: [10] } }));
  expect(comparison).toEqual({ read: 3, stored: 3, missing: 0, twice: 0, foreign: 0, exact: true, examples: [] });
});

test("a value that did not arrive is missing, under its own input alone", () => {
  const comparison = compare(delivered({ a: [1, 2], b: [2], c: [5] }), stored({ a: { 1: [10] }, b: { 2: [10] } }));
  expect(comparison).toMatchObject({ read: 4, stored: 2, missing: 2, exact: false });
  expect(comparison.examples).toEqual(["a: 2 is missing", "c: 5 is missing"]);
});

test("a value stored under two times fails although nothing is missing", () => {
  const comparison = compare(delivered({ a: [1] }), stored({ a: { 1: [0, 1_000_000] } }));
  expect(comparison).toMatchObject({ read: 1, stored: 1, missing: 0, twice: 1, exact: false });
  expect(comparison.examples).toEqual(["a: 1 is stored at 1970-01-01T00:00:00.000Z and 1970-01-01T00:00:01.000Z"]);
});

test("a value that no device served fails", () => {
  const comparison = compare(delivered({ a: [1] }), stored({ a: { 1: [0], 1.5: [1] }, x: { 3: [1] } }));
  expect(comparison).toMatchObject({ missing: 0, foreign: 2, exact: false });
});

test("a large loss is reported with a few examples", () => {
  const values = Array.from({ length: 5_000 }, (_, i) => i);
  const comparison = compare(delivered({ a: values }), stored({}));
  expect(comparison).toMatchObject({ missing: 5_000 });
  expect(comparison.examples).toHaveLength(10);
});

test("the last line has the form that scripts read", () => {
  const comparison = compare(delivered({ a: [1, 2] }), stored({ a: { 1: [0] } }));
  expect(lastLine(comparison, { requests: 31, maxRate: 1, outageMs: 5_000 })).toBe(
    "demo: read 2, stored 1, missing 1, requests 31, max rate 1.00/s, outage 5 s",
  );
  expect(lastLine(comparison, { requests: 0, maxRate: 0.5, outageMs: 0 })).toMatch(/max rate 0\.50\/s, outage 0 s$/);
});
