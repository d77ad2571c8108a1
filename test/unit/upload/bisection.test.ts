// The search for bad points finds exactly those in few requests, whatever the service answers and wherever they are.
import fc from "fast-check";
import { expect, test } from "vitest";
import type { InputId } from "../../../src/core/point.ts";
import { Bisection, Breaker } from "../../../src/upload/failures/bisection.ts";
import { SubBatch } from "../../../src/upload/window/sub-batch.ts";
import { extractedColumn } from "../../support/packing.ts";
import { runs } from "../../support/property.ts";

/** A sub-batch with `sizes[k]` points in series k. Each point's number is its value and block. */
function subBatch(sizes: readonly number[]): SubBatch {
  let next = 0;
  return new SubBatch(
    sizes.map((size, k) => {
      const numbers = Array.from({ length: size }, () => next++);
      const times = Float64Array.from(numbers, (_, i) => i);
      return extractedColumn(`s${k}` as InputId, times, Float64Array.from(numbers), Float64Array.from(numbers));
    }),
  );
}

const pointsOf = ({ columns }: SubBatch) => columns.flatMap(({ values }) => [...values]);

/**
 * Simulates a service that refuses requests with a bad point and names up to `naming` of the inputs. `most` is the
 * maximum number of points that it accepts at once.
 */
function search(whole: SubBatch, bad: ReadonlySet<number>, naming: number, most = Number.POSITIVE_INFINITY) {
  const bisection = new Bisection();
  const found: number[] = [];
  const stored: number[] = [];
  let requests = 1;
  const faults = (of: SubBatch) => {
    const faulty = of.columns.filter(({ values }) => values.some((value) => bad.has(value)));
    return faulty.slice(0, naming).map(({ input }) => input);
  };
  bisection.add(whole, faults(whole));
  for (let next = bisection.next(); next; next = bisection.next()) {
    requests++;
    if (next.points > most) bisection.split();
    else if (pointsOf(next).some((value) => bad.has(value))) {
      const culprit = bisection.refused(faults(next));
      if (culprit) found.push(...pointsOf(culprit));
    } else {
      stored.push(...pointsOf(next));
      bisection.accepted();
    }
    expect(bisection.points).toBe(whole.points - found.length - stored.length);
  }
  return { found, stored, requests };
}

test("every bad point is found and every good one stored, once each, whichever points the service names and whatever it finds too large", () => {
  const naming = fc.constantFrom(0, 1, 100);
  const most = fc.integer({ min: 1, max: 60 });
  const sizes = fc.array(fc.integer({ min: 1, max: 20 }), { minLength: 1, maxLength: 12 });
  fc.assert(
    fc.property(sizes, fc.array(fc.nat(), { minLength: 1, maxLength: 6 }), naming, most, (of, picks, named, limit) => {
      const whole = subBatch(of);
      const bad = new Set(picks.map((pick) => pick % whole.points));
      const { found, stored } = search(whole, bad, named, limit);
      expect(found.toSorted((a, b) => a - b)).toEqual([...bad].toSorted((a, b) => a - b));
      expect([...found, ...stored].toSorted((a, b) => a - b)).toEqual(pointsOf(whole));
    }),
    runs(400),
  );
});

test("one bad point among 100,000 takes at most 35 requests, wherever it is", () => {
  const whole = subBatch(Array.from({ length: 100 }, () => 1_000));
  for (const bad of [0, 1, 499, 50_000, 66_666, 99_998, 99_999])
    expect(search(whole, new Set([bad]), 0).requests).toBeLessThanOrEqual(35);
  // When one half is refused, the other is not tried. With the bad point always in that half, this halves the requests.
  expect(search(whole, new Set([99_999]), 0).requests).toBeLessThanOrEqual(20);
});

test("the breaker opens for 25 refusals in a row, and closes with the next acceptance", () => {
  const breaker = new Breaker();
  for (let i = 0; i < 24; i++) breaker.refused();
  expect(breaker.open).toBe(false);
  breaker.refused();
  expect(breaker.open).toBe(true);
  breaker.accepted(1);
  expect(breaker.open).toBe(false);
});

test("the breaker opens when more than 1 % of 100,000 points are refused, and not for fewer", () => {
  const breaker = new Breaker();
  for (let i = 0; i < 2_000; i++) {
    breaker.rejected(1);
    breaker.accepted(200);
  }
  expect(breaker.open).toBe(false);
  for (let i = 0; i < 2_000 && !breaker.open; i++) {
    breaker.rejected(1);
    breaker.accepted(20);
  }
  expect(breaker.open).toBe(true);
});
