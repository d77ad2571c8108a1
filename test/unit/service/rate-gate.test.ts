import { expect, test } from "vitest";
import { rateGate } from "../../../src/service/http/admission.ts";
import { ManualClock } from "../../support/runtime.ts";

const forever = new AbortController().signal;

test("excess calls start later, in order, never more than the rate in any second", async () => {
  const clock = new ManualClock();
  const gate = rateGate(clock, 2);
  const starts: [number, number][] = [];
  for (let call = 0; call < 5; call++) void gate.start(forever).then(() => starts.push([call, clock.monotonic()]));
  await clock.advance(5_000);
  expect(starts).toEqual([
    [0, 0],
    [1, 0],
    [2, 1_000],
    [3, 1_000],
    [4, 2_000],
  ]);
});

test("an aborted call frees its place and does not change the order of the others", async () => {
  const clock = new ManualClock();
  const gate = rateGate(clock, 1);
  const starts: [string, number][] = [];
  const queue = (name: string, signal = forever) =>
    gate.start(signal).then(
      () => starts.push([name, clock.monotonic()]),
      () => starts.push([`${name} gave up`, clock.monotonic()]),
    );
  const impatient = new AbortController();
  void queue("first");
  void queue("second");
  void queue("third", impatient.signal);
  void queue("fourth");
  await clock.advance(500);
  impatient.abort(new Error("gone"));
  await clock.advance(5_000);
  expect(starts).toEqual([
    ["first", 0],
    ["third gave up", 500],
    ["second", 1_000],
    ["fourth", 2_000],
  ]);
});
