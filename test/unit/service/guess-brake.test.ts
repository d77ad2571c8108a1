import { expect, test } from "vitest";
import { GuessBrake } from "../../../src/service/http/guess-brake.ts";
import { ManualClock } from "../../support/runtime.ts";

test("the brake remembers a bounded number of addresses, however many guess", async () => {
  const clock = new ManualClock();
  const brake = new GuessBrake(clock);
  let most = 0;
  for (let n = 0; n < 20_000; n++) {
    brake.delayMs(`10.${n >> 16}.${(n >> 8) & 255}.${n & 255}`);
    most = Math.max(most, brake.size);
    if (n % 100 === 0) await clock.advance(1_000);
  }

  expect(most).toBeLessThanOrEqual(310);
});

test("an address with only old guesses is forgotten", async () => {
  const clock = new ManualClock();
  const brake = new GuessBrake(clock);
  for (let n = 0; n < 50; n++) brake.delayMs(`10.0.0.${n}`);
  await clock.advance(60_000);
  brake.delayMs("10.0.1.1");

  expect(brake.size).toBe(1);
});

test("all addresses together get ten refusals a second, and further ones wait at most eight seconds", () => {
  const brake = new GuessBrake(new ManualClock());
  const delays = Array.from({ length: 200 }, (_, n) => brake.delayMs(`10.0.0.${n}`));

  expect(delays.slice(0, 50)).toEqual(Array(50).fill(0));
  expect(delays.slice(50, 130)).toEqual(Array.from({ length: 80 }, (_, n) => (n + 1) * 100));
  expect(delays.slice(130)).toEqual(Array(70).fill(undefined));
});

test("one address cannot use up the common budget", () => {
  const brake = new GuessBrake(new ManualClock());
  for (let n = 0; n < 1_000; n++) brake.delayMs("10.0.0.1");

  expect(brake.delayMs("10.0.0.2")).toBe(0);
});

test("the addresses of one IPv6 network count as one, and a mapped IPv4 address as itself", () => {
  const brake = new GuessBrake(new ManualClock());
  for (let n = 0; n < 10; n++) expect(brake.delayMs(`2001:db8:1:2::${n.toString(16)}`)).toBe(0);
  expect(brake.delayMs("2001:db8:1:2:ffff::1")).toBe(1_000);
  expect(brake.delayMs("2001:db8:1:3::1")).toBe(0);

  for (let n = 0; n < 10; n++) expect(brake.delayMs("::ffff:10.0.0.1")).toBe(0);
  expect(brake.delayMs("10.0.0.1")).toBe(1_000);
  expect(brake.delayMs("::ffff:10.0.0.2")).toBe(0);
});
