import fc from "fast-check";
import { expect, test } from "vitest";
import { checkFrame } from "../../../src/service/call/check-frame.ts";
import { Faults } from "../../../src/service/call/rpc-fault.ts";
import { parseTimestamp } from "../../../src/wire/timestamp.ts";
import { insertParams } from "../../support/insert-contract.ts";
import { runs } from "../../support/property.ts";

const integration = "c8ktonqsahsmemfs7lv0";
const at = (text: string) => parseTimestamp(text) ?? Number.NaN;

test("unsorted times are sorted, of repeated ones the last value counts, nulls are left out", () => {
  const faults = new Faults();
  const frame = checkFrame(
    {
      times: [
        "2026-01-01T00:00:02Z",
        "2026-01-01T01:00:01+01:00",
        "2026-01-01T00:00:02.0000009Z",
        "2026-01-01T00:00:00Z",
      ],
      series: { a: [1, 2, 3, 4], b: [1, 2, null, null], c: [null, null, null, null] },
    },
    "data",
    faults,
  );
  expect(faults.any).toBe(false);
  const [zero, one, two] = [0, 1, 2].map((second) => at(`2026-01-01T00:00:0${second}Z`));
  expect(frame.get("a")?.()).toEqual({ times: Float64Array.of(zero!, one!, two!), values: Float64Array.of(4, 2, 3) });
  expect(frame.get("b")?.()).toEqual({ times: Float64Array.of(one!, two!), values: Float64Array.of(2, 1) });
  expect(frame.get("c")?.()).toEqual({ times: new Float64Array(), values: new Float64Array() });
});

test("the check refuses exactly what the schema of the method refuses", () => {
  const time = fc.oneof(
    { weight: 8, arbitrary: fc.constantFrom("2026-01-01T00:00:00Z", "2026-01-01T00:00:01.5+02:00") },
    { weight: 1, arbitrary: fc.constantFrom<unknown>("now", 5, null, "2026-01-01") },
  );
  const cell = fc.oneof(
    { weight: 20, arbitrary: fc.oneof(fc.double({ noNaN: true, noDefaultInfinity: true }), fc.constant(null)) },
    { weight: 1, arbitrary: fc.constantFrom<unknown>("1", true, Number.POSITIVE_INFINITY, {}, []) },
  );
  const key = fc.oneof(
    { weight: 8, arbitrary: fc.constantFrom("a", "b.c", "x/y+z", "k".repeat(128)) },
    { weight: 1, arbitrary: fc.constantFrom("", "a b", "ä", "k".repeat(129)) },
  );
  const maybe = <T>(arbitrary: fc.Arbitrary<T>) =>
    fc.oneof(
      { weight: 12, arbitrary },
      { weight: 1, arbitrary: fc.constantFrom<unknown>(undefined, null, 1, "x", [], {}) },
    );
  const frame = fc.nat(3).chain((length) =>
    fc.record({
      times: maybe(fc.array(time, { minLength: length, maxLength: length })),
      series: maybe(
        fc.dictionary(
          key,
          maybe(
            fc.oneof(
              { weight: 9, arbitrary: fc.array(cell, { minLength: length, maxLength: length }) },
              { weight: 1, arbitrary: fc.array(cell, { maxLength: 4 }) },
            ),
          ),
        ),
      ),
    }),
  );
  let refused = 0;
  fc.assert(
    fc.property(maybe(frame), (data) => {
      const faults = new Faults();
      checkFrame(data, "data", faults);
      const schema = insertParams.safeParse({ integration, data });
      expect(faults.any).toBe(!schema.success);
      if (faults.any) refused++;
    }),
    runs(3_000),
  );
  expect(refused).toBeGreaterThan(500);
});
