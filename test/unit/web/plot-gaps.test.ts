// Where the line of a plot ends: at gaps of the record, and between points further apart than the gap detection.
import { expect, test } from "vitest";

type Column = readonly (number | null)[];
interface Row {
  readonly state: string;
  readonly source?: string;
  readonly inputs: readonly string[];
  readonly [member: string]: unknown;
}
interface PlotGaps {
  readonly isMissing: (gap: Row, tag: { readonly source: string; readonly input: string }) => boolean;
  readonly interruptionsOf: (gaps: readonly object[], now: number) => [from: number, to: number][];
  readonly withGaps: (
    columns: readonly Column[],
    series: { readonly gapMs?: number; readonly bucketMs?: number },
    interruptions: readonly (readonly [number, number])[],
  ) => Column[];
}
const script = new URL("../../../src/web/page/plot-gaps.js", import.meta.url);
const { interruptionsOf, isMissing, withGaps }: PlotGaps = await import(script.href);

test("without gaps the points are drawn as they are", () => {
  const columns = [
    [0, 1_000, 90_000],
    [1, 2, 3],
  ];
  expect(withGaps(columns, {}, [])).toEqual(columns);
  expect(withGaps([[], []], {}, [[0, 10]])).toEqual([[], []]);
});

test("the line ends between points that are further apart than the gap detection and their bucket", () => {
  const points = [
    [0, 60_000, 240_000],
    [1, 2, 3],
    [0, 1, 2],
  ];
  expect(withGaps(points, { gapMs: 60_000, bucketMs: 60_000 }, [])).toEqual([
    [0, 60_000, 120_001, 240_000],
    [1, 2, null, 3],
    [0, 1, null, 2],
  ]);
  expect(withGaps(points, { gapMs: 120_000, bucketMs: 60_000 }, [])).toEqual(points);
});

test("a value is known until a gap of the record begins, and the next one is the first after it", () => {
  const rare = [
    [0, 600_000],
    [1, 2],
  ];
  expect(withGaps(rare, {}, [[500_000, 599_900]])).toEqual([
    [0, 500_000, 500_001, 600_000],
    [1, 1, null, 2],
  ]);
});

test("a polled value ends with its last point, and a clock that differs by a second cuts no other piece", () => {
  const polled = [
    [8_000, 9_000, 10_000, 70_000, 71_000],
    [1, 2, 3, 4, 5],
  ];
  expect(withGaps(polled, {}, [[9_500, 70_500]])).toEqual([
    [8_000, 9_000, 10_000, 10_001, 70_000, 71_000],
    [1, 2, 3, null, 4, 5],
  ]);
});

test("during an open gap the last value is drawn until it began", () => {
  expect(withGaps([[0], [7]], {}, [[5_000, 9_000]])).toEqual([
    [0, 5_000, 5_001],
    [7, 7, null],
  ]);
});

test("a gap within a bucket that has values is not drawn", () => {
  const buckets = [
    [0, 120_000],
    [1, 2],
  ];
  expect(withGaps(buckets, { bucketMs: 120_000 }, [[30_000, 60_000]])).toEqual(buckets);
});

const tag = { source: "hall", input: "a" };
const row = { source: "hall", inputs: ["a", "b"], state: "lost" };
const named = (inputs: readonly string[]) => ({ tags: inputs.length, inputs });

test.each<[missing: boolean, gap: Row]>([
  [true, row],
  [true, { ...row, inputs: [] }],
  [true, { ...row, state: "open" }],
  [false, { ...row, state: "filled" }],
  [false, { ...row, inputs: ["b"] }],
  [false, { ...row, source: "yard" }],
  // The buffer lost points of unknown tags.
  [false, { inputs: [], state: "lost" }],
  [true, { ...row, state: "partly", unfilled: named(["a"]) }],
  [false, { ...row, state: "partly", unfilled: named(["b"]) }],
  [false, { ...row, state: "filling", asked: named(["b"]) }],
  [true, { ...row, state: "filling" }],
])("values are missing: %s, for %j", (missing, gap) => {
  expect(isMissing(gap, tag)).toBe(missing);
});

test("each interruption of a row counts by itself, and an open one until now", () => {
  const gaps = [
    { from: 50e6, inputs: [] },
    {
      from: 1e6,
      to: 9e6,
      intervals: [
        [1e6, 2e6],
        [8e6, 9e6],
      ],
    },
  ];
  expect(interruptionsOf(gaps, 60_000)).toEqual([
    [1_000, 2_000],
    [8_000, 9_000],
    [50_000, 60_000],
  ]);
});
