// The reconciliation of the drills and of the soak test must be able to fail.
import { expect, test } from "vitest";
import type { Gap } from "../../../src/agent/gaps/gap.ts";
import { type EpochMicros, epochMicros, type InputId } from "../../../src/core/point.ts";
import { type Held, lengthOf, lostSpans, reconcile } from "../../support/gap-reconciliation.ts";

const [a, b] = ["a", "b"] as [InputId, InputId]; // valid Input IDs
const seconds = (at: number): EpochMicros => epochMicros(at * 1e6);
const row = (from: number, to: number, more: Partial<Gap> = {}): Gap => ({
  id: 1,
  cause: "disconnected",
  reason: "gone",
  state: "lost",
  tags: 2,
  inputs: [],
  times: 1,
  from: seconds(from),
  to: seconds(to),
  ...more,
});
/** Of the values 1 to 9, one a second, the service has all except 4. */
const stored = new Map([[a, new Map([1, 2, 3, 5, 6, 7, 8, 9].map((value) => [value, [seconds(value)]] as const))]]);
const held = (stamped: boolean, at = 4): Held[] => [{ input: a, value: 4, at: seconds(at), stamped }];
const unexplained = (all: readonly Held[], ...gaps: Gap[]) => reconcile(all, stored, gaps).unexplained.length;

test.each<[string, number, Gap]>([
  ["a row around it", 0, row(3, 5)],
  ["a row that is still open", 0, { ...row(3, 5), to: undefined, state: "open" }],
  ["a row of that tag", 0, row(3, 5, { inputs: ["a"] })],
  ["a row of another tag", 1, row(3, 5, { inputs: ["b"] })],
  ["a row that was filled", 1, row(3, 5, { state: "filled" })],
  [
    "a row that was filled in part, not of this tag",
    0,
    row(3, 5, { state: "partly", unfilled: { tags: 1, inputs: ["a"] } }),
  ],
  [
    "a row that was filled in part, of this tag",
    1,
    row(3, 5, { state: "partly", unfilled: { tags: 1, inputs: ["b"] } }),
  ],
  ["a row before it", 1, row(1, 3)],
  ["a row behind it", 1, row(5, 9)],
  ["a row of several times, one of them around it", 0, row(1, 9, { intervals: [[seconds(3), seconds(5)]] })],
  ["a row of several times, none of them around it", 1, row(1, 9, { intervals: [[seconds(5), seconds(9)]] })],
])("%s", (_, open, gap) => {
  expect(unexplained(held(true), gap)).toBe(open);
  // Without a source timestamp, the time at which the server sent it differs from the time at which the agent got it.
  expect(unexplained(held(false, 5.01), gap)).toBe(open);
});

test("a device time is trusted", () => {
  expect(unexplained(held(true, 5.01), row(3, 5))).toBe(1);
});

test("without a row a missing value is unexplained, and a stored one is not missing", () => {
  expect(reconcile([...held(true), { ...held(true)[0]!, value: 5 }], stored, [])).toMatchObject({
    missing: [{ value: 4 }],
    unexplained: ["a 4 at 1970-01-01T00:00:04.000Z"],
  });
});

test("a record that reports everything as lost is detected by losses where nothing happened", () => {
  const happened = [[seconds(3), seconds(5)]] as const;
  const lost = (...gaps: Gap[]) => lengthOf(lostSpans(gaps, a), happened) / 1e6;
  expect(lost(row(3, 5), row(3.5, 4))).toBe(0);
  expect(lost(row(1, 9))).toBe(6);
  expect(lost(row(1, 4), row(2, 6), row(8, 9, { inputs: [b] }))).toBe(3);
  expect(lost({ ...row(6, 9), to: undefined, state: "open" })).toBe(Number.POSITIVE_INFINITY);
});
