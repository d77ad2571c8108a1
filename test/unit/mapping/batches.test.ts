// Readings in columns come to the same points, counts and states as the same readings one by one.
import fc from "fast-check";
import { expect, test } from "vitest";
import { epochMicros } from "../../../src/core/point.ts";
import type { ReadingBatch } from "../../../src/core/reading.ts";
import type { Reading } from "../../../src/core/source.ts";
import { readingsOf } from "../../../src/lib/reading-batch.ts";
import { reading, tagId, tryMapping } from "../../support/mapping.ts";
import { runs } from "../../support/property.ts";

const rules = [
  {},
  { input: "b", scale: 0.1, offset: -5, valid: { min: 0, max: 50 } },
  { input: "c", report: { deadband: 2, heartbeat: "5s" } },
  { input: "d", report: { minInterval: "3s" } },
  { input: "e", sameTime: "keep" as const, align: "1s" },
  { input: "f", shared: true, values: { true: 7 } },
  { input: "g.{n}", badQuality: "keep" as const },
  { input: "h", signal: { type: "enum" as const, enumValues: { "1": "on" } } },
  // The Input ID of another tag.
  { input: "a" },
];
const places = [
  ...rules.map((_, tag) => ({ tag: tagId(tag), captures: { n: "1" }, address: `hr:${tag}` })),
  { tag: tagId(6), captures: { n: "2" }, address: "hr:20" },
  // A second address.
  { tag: tagId(0), captures: {}, address: "hr:21" },
];

const value = fc.oneof(fc.integer({ min: -2, max: 9 }), fc.double({ noNaN: true, min: -1_000, max: 1_000 }));
const apart = fc.oneof<fc.Arbitrary<Partial<Reading>>[]>(
  fc.constant({ value: undefined, quality: "bad", reason: "silent" }),
  fc.record({ value: fc.constantFrom("on", "x", true, 2n ** 60n), quality: fc.constantFrom("good", "bad") }),
  fc.record({ value, historical: fc.constant(true) }),
);
const cell = fc.record({
  row: fc.nat(places.length - 1),
  value,
  lateS: fc.nat(3),
  apart: fc.option(apart, { freq: 5 }),
});
const step = fc.record({
  cells: fc.array(cell, { maxLength: 20 }),
  clock: fc.constantFrom("agent", "device"),
  booleans: fc.boolean(),
  hasOneTime: fc.boolean(),
  alive: fc.boolean(),
  afterMs: fc.nat(4_000),
});

test("readings in columns and the same ones by themselves give the same points, counts and states", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 12 }), async (steps) => {
      const [columns, plain] = [tryMapping(rules), tryMapping(rules)];
      for (const { cells, clock, booleans, hasOneTime, alive, afterMs } of steps) {
        const now = columns.clock.now();
        const times = cells.map(({ lateS }) => epochMicros(now - lateS * 1e6));
        const batch: ReadingBatch = {
          places,
          rows: Uint32Array.from(cells, ({ row }) => row),
          values: Float64Array.from(cells, (each) => (booleans ? Number(each.value > 0) : each.value)),
          booleans,
          times: hasOneTime ? now : Float64Array.from(times),
          clock,
          apart: new Map(
            cells.flatMap((each, i) =>
              each.apart ? [[i, reading(0, { ...places[each.row], time: times[i]!, clock, ...each.apart })]] : [],
            ),
          ),
        };
        const rest = { descriptions: [], alive };
        const points = [...columns.mapping.mapBatches(rest, [batch])];
        expect(points).toEqual(plain.mapping.map({ ...rest, readings: readingsOf([batch]) }));
        for (const { clock: each } of [columns, plain]) await each.advance(afterMs);
        expect(columns.mapping.due()).toEqual(plain.mapping.due());
      }
      expect(columns.mapping.tags()).toEqual(plain.mapping.tags());
      expect(columns.mapping.refusals()).toEqual(plain.mapping.refusals());
      expect(columns.described).toEqual(plain.described);
      const filtered = ["mapping_filtered_readings_total", { source: "bus1" }] as const;
      expect(columns.runtime.metric(...filtered)).toBe(plain.runtime.metric(...filtered));
    }),
    runs(100),
  );
});
