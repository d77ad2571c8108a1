// Readings in columns give the same points, counts and states as the same readings one by one.
import fc from "fast-check";
import { expect, test } from "vitest";
import { readingsOf } from "../../../src/lib/readings/reading-batch.ts";
import { tagId, tryMapping } from "../../support/mapping.ts";
import { runs } from "../../support/property.ts";
import { batchesOf, batchRules, batchStep, restOf } from "../../support/reading-batches.ts";

test("readings in columns and the same readings one by one give the same points, counts and states", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(batchStep, { maxLength: 12 }), async (steps) => {
      const [columns, plain, watched] = [tryMapping(batchRules), tryMapping(batchRules), tryMapping(batchRules)];
      for (const step of steps) {
        const batches = batchesOf(step, columns.clock.now());
        const points = [...columns.mapping.mapBatches(restOf(step), batches)];
        expect(points).toEqual(plain.mapping.map({ ...restOf(step), readings: readingsOf(batches) }));
        // The page of each input is open.
        for (const { tag, input } of watched.mapping.tags()) watched.mapping.inspect(tag, input);
        expect([...watched.mapping.mapBatches(restOf(step), batches)]).toEqual(points);
        for (const { clock: each } of [columns, plain, watched]) await each.advance(step.afterMs);
        const due = plain.mapping.due();
        expect([columns.mapping.due(), watched.mapping.due()]).toEqual([due, due]);
      }
      const tags = plain.mapping.tags();
      expect([columns.mapping.tags(), watched.mapping.tags()]).toEqual([tags, tags]);
      expect(columns.mapping.refusals()).toEqual(plain.mapping.refusals());
      expect(columns.mapping.timeFaults()).toEqual(plain.mapping.timeFaults());
      expect(columns.described).toEqual(plain.described);
      for (const name of ["filtered_readings", "dropped_readings", "rounded_values"]) {
        const metric = [`mapping_${name}_total`, { source: "bus1" }] as const;
        expect(columns.runtime.metric(...metric)).toBe(plain.runtime.metric(...metric));
      }
    }),
    runs(100),
  );
});

test("a heartbeat added to as many points as readings keeps every value of its time", async () => {
  const { mapping, clock } = tryMapping([
    { input: "read", sameTime: "keep" },
    { input: "still", sameTime: "keep", report: { heartbeat: "2s" } },
  ]);
  const places = [0, 1].map((tag) => ({ tag: tagId(tag), captures: {}, address: `hr:${tag}` }));
  const given = (...values: number[]) => ({
    places,
    values: Float64Array.from(values),
    times: clock.now(),
    clock: "agent" as const,
  });
  mapping.mapBatches({ descriptions: [] }, [given(1, 2)]);
  await clock.advance(3_000);

  const points = [...mapping.mapBatches({ descriptions: [], alive: [new Set([tagId(0), tagId(1)])] }, [given(1)])];

  expect(points).toMatchObject([
    { input: "read", value: 1, sameTime: "keep" },
    { input: "still", value: 2, sameTime: "keep" },
  ]);
});
