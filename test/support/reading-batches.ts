// Random deliveries in columns, and the same deliveries as plain readings, for comparing both.
import fc from "fast-check";
import { epochMicros } from "../../src/core/point.ts";
import type { ReadingBatch, ReadPlace } from "../../src/core/reading.ts";
import type { Delivery, Reading } from "../../src/core/source.ts";
import { reading, tagId } from "./mapping.ts";

export const batchRules = [
  {},
  { input: "b", scale: 0.1, offset: -5, valid: { min: 0, max: 50 } },
  { input: "c", report: { deadband: 2, heartbeat: "2s" }, sameTime: "keep" as const },
  { input: "d", report: { minInterval: "3s" } },
  { input: "e", sameTime: "keep" as const, align: "1s" },
  { input: "f", shared: true, values: { true: 7 } },
  { input: "g.{n}", badQuality: "keep" as const, maxInputs: 2 },
  { input: "h", signal: { type: "enum" as const, enumValues: { "1": "on" } } },
  // The Input ID of another tag.
  { input: "a" },
  { input: "f", shared: true, scale: 1 / 3, sameTime: "keep" as const },
];

const bound: readonly ReadPlace[] = batchRules.map((_, tag) => ({
  tag: tagId(tag),
  captures: { n: "1" },
  address: `hr:${tag}`,
}));
/** A driver yields the same list object for the same places. */
const lists: readonly (readonly ReadPlace[])[] = [
  [
    ...bound,
    { tag: tagId(6), captures: { n: "2" }, address: "hr:20" },
    // A second address.
    { tag: tagId(0), captures: {}, address: "hr:21" },
    // More Input IDs than the tag may have, and an unknown tag.
    { tag: tagId(6), captures: { n: "3" }, address: "hr:22" },
    { tag: tagId(99), captures: {}, address: "hr:23" },
  ],
  bound.toReversed(),
];

const oddNumbers = [Number.NaN, Number.POSITIVE_INFINITY, -0, Number.MIN_VALUE, 2 ** 53 + 2, 1e300];
const value = fc.oneof(
  { arbitrary: fc.integer({ min: -2, max: 9 }), weight: 4 },
  { arbitrary: fc.double({ noNaN: true, min: -1_000, max: 1_000 }), weight: 2 },
  fc.constantFrom(...oddNumbers),
);
const apart = fc.oneof<fc.Arbitrary<Partial<Reading>>[]>(
  fc.constant({ value: undefined, quality: "bad", reason: "silent" }),
  fc.record({
    value: fc.constantFrom("on", "x", true, 2n ** 60n),
    quality: fc.constantFrom("good", "bad", "uncertain"),
    clock: fc.constantFrom("agent", "device"),
  }),
  fc.record({ value, historical: fc.constant(true) }),
);
const cell = fc.record({
  row: fc.nat(),
  value,
  // Late, on time or early; equal times are frequent.
  byS: fc.constantFrom(0, 0, 0, -1, -2, -3, 1),
  apart: fc.option(apart, { freq: 5 }),
});
const columns = fc.record({
  list: fc.nat(lists.length - 1),
  cells: fc.oneof(fc.array(cell, { maxLength: 2 }), fc.array(cell, { maxLength: 20 })),
  clock: fc.constantFrom("agent", "device"),
  booleans: fc.boolean(),
  hasOneTime: fc.boolean(),
  /** The batch covers the places from the first on, without `rows`. */
  isWhole: fc.boolean(),
});

/** A delivery, and the time until the next one. */
export const batchStep = fc.record({
  batches: fc.array(columns, { maxLength: 3 }),
  alive: fc.constantFrom(undefined, [new Set([0, 1, 2, 3, 4, 5, 6, 99].map(tagId))]),
  afterMs: fc.nat(4_000),
});
export type BatchStep = typeof batchStep extends fc.Arbitrary<infer T> ? T : never;

export function batchesOf({ batches }: BatchStep, now: number): ReadingBatch[] {
  return batches.map(({ list, cells, clock, booleans, hasOneTime, isWhole }) => {
    const places = lists[list]!;
    const shown = isWhole ? cells.slice(0, places.length) : cells;
    const rows = Uint32Array.from(shown, ({ row }, i) => (isWhole ? i : row % places.length));
    const times = shown.map(({ byS }) => epochMicros(now + byS * 1e6));
    return {
      places,
      ...(!isWhole && { rows }),
      values: Float64Array.from(shown, (each) => (booleans ? Number(each.value > 0) : each.value)),
      booleans,
      times: hasOneTime ? epochMicros(now) : Float64Array.from(times),
      clock,
      apart: new Map(
        shown.flatMap((each, i) =>
          each.apart ? [[i, reading(0, { ...places[rows[i]!], time: times[i]!, clock, ...each.apart })]] : [],
        ),
      ),
    };
  });
}

/** The other members of a delivery. */
export const restOf = ({ alive }: BatchStep): Pick<Delivery, "descriptions" | "alive"> => ({
  descriptions: [],
  ...(alive && { alive }),
});
