import { expect, test } from "vitest";
import { probeBudget, type UnitBreaker, unitBreaker } from "../../../../src/source/modbus/connection/breaker.ts";
import { ManualClock } from "../../../support/runtime.ts";

function breakers(count: number) {
  const clock = new ManualClock();
  const budget = probeBudget(clock);
  return { clock, units: Array.from({ length: count }, () => unitBreaker(clock, () => 1, budget)) };
}

function fail(breaker: UnitBreaker, times: number): void {
  for (let i = 0; i < times; i++) breaker.failed("silent", 1_000);
}

test("a unit goes down with its third failure in a row", () => {
  const [breaker] = breakers(1).units;
  expect(breaker?.failed("silent", 1_000)).toBe(false);
  expect(breaker?.failed("silent", 1_000)).toBe(false);
  breaker?.succeeded();
  expect(breaker?.failed("silent", 1_000)).toBe(false);
  expect(breaker?.failed("silent", 1_000)).toBe(false);
  expect(breaker?.down).toBeUndefined();
  expect(breaker?.failed("silent", 1_000)).toBe(true);
  expect(breaker?.down).toBe("silent");
});

test("while it is down one probe is sent at growing intervals, and one success restores it", async () => {
  const { clock, units } = breakers(1);
  const breaker = units[0]!;
  fail(breaker, 3);
  const probes: number[] = [];
  for (let second = 0; second < 200; second++) {
    await clock.advance(1_000);
    if (breaker.admit()) {
      expect(breaker.admit()).toBe(false);
      probes.push(clock.monotonic() / 1_000);
      breaker.failed("still silent", 100);
    }
  }
  expect(probes).toEqual([10, 30, 70, 130, 190]);
  await clock.advance(60_000);
  expect(breaker.admit()).toBe(true);
  breaker.succeeded();
  expect(breaker.down).toBeUndefined();
  expect([breaker.admit(), breaker.admit()]).toEqual([true, true]);
});

test("a cancelled probe may be made by another caller", async () => {
  const { clock, units } = breakers(1);
  const breaker = units[0]!;
  fail(breaker, 3);
  await clock.advance(60_000);
  expect(breaker.admit()).toBe(true);
  breaker.cancelled();
  expect(breaker.admit()).toBe(true);
});

test("probing units that are down takes at most a fortieth of the time, however many they are", async () => {
  const { clock, units } = breakers(50);
  for (const unit of units) fail(unit, 3);
  let spent = 0;
  while (clock.monotonic() < 2_400_000) {
    await clock.advance(1_000);
    for (const unit of units)
      if (unit.admit()) {
        spent++;
        await clock.advance(1_000);
        unit.failed("silent", 1_000);
      }
  }
  expect(spent).toBeGreaterThan(50);
  expect(spent).toBeLessThanOrEqual(60);
});
