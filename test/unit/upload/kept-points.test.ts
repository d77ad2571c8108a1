// Points of distrusted inputs that are kept in memory: what they hold back, and how many there are.
import { expect, test } from "vitest";
import type { InputId } from "../../../src/core/point.ts";
import type { Frame, Outcome } from "../../../src/core/sink.ts";
import { parkedInputs } from "../../../src/upload/failures/parked-inputs.ts";
import { extractedColumn } from "../../support/packing.ts";
import { testRuntime } from "../../support/runtime.ts";
import { SimulatedDelivery, storesOthers } from "../../support/simulated-delivery.ts";

const input = "a" as InputId;
const other = "b" as InputId;
const away: Outcome = { kind: "unavailable", cause: new Error("away") };
const invalid: Outcome = { kind: "refused", code: -32_602, reason: "invalid", inputs: [] };
const stores = storesOthers(() => false);

/** Answers requests with values of `a` by `answer`, and accepts all others. Undefined: accepted. */
function openService(answer: (values: readonly number[]) => Outcome | undefined) {
  const stored = new Set<number>();
  const send = (frame: Frame): Outcome => {
    const { data } = JSON.parse(Buffer.from(frame.body).toString("utf8")).params;
    const all: readonly (number | null)[] = data.series[input] ?? [];
    const values = all.filter((value) => value !== null);
    const outcome = (values.length > 0 ? answer(values) : undefined) ?? stores(frame);
    if (outcome.kind === "accepted") for (const value of values) stored.add(value);
    return outcome;
  };
  return { send, stored };
}

const points = (delivery: SimulatedDelivery, count: number) => ({
  a: Array.from({ length: count }, (_, i) => [delivery.clock.now() + i * 1e6, i] as const),
});

test("after a lost connection in the search among its points, a distrusted input is tried again", async () => {
  let isAway: boolean | undefined;
  const { send, stored } = openService((values) => {
    if (values.some((value) => value < 4)) return invalid;
    const outcome = isAway ? away : undefined;
    isAway = isAway === undefined;
    return outcome;
  });
  await using delivery = await SimulatedDelivery.start(send);
  delivery.reader.append(points(delivery, 30));
  await delivery.pass(600, "other");

  expect(isAway).toBe(false);
  expect(delivery.parked.refused).toBe(0);
  expect(stored.size).toBe(26);
  expect(delivery.reader.empty).toBe(true);
});

test("all points of a distrusted input arrive after retries with some of them were lost", async () => {
  let singles = 0;
  let lost = 0;
  const { send, stored } = openService((values) => {
    if (singles === 3) return lost++ < 2 ? away : undefined;
    if (values.length === 1) singles++;
    return invalid;
  });
  await using delivery = await SimulatedDelivery.start(send);
  delivery.reader.append(points(delivery, 30));
  await delivery.pass(300, "other");

  expect(lost).toBeGreaterThan(2);
  expect(stored.size).toBe(27);
  expect(delivery.reader.empty).toBe(true);
});

test("kept points do not hold back points of another input in the same block", async () => {
  let isRefused = true;
  const answer = (frame: Frame): Outcome => {
    if (frame.inputs.includes(input)) return invalid;
    const outcome = storesOthers(() => isRefused)(frame);
    isRefused = false;
    return outcome;
  };
  await using delivery = await SimulatedDelivery.start(answer);
  const { a } = points(delivery, 30);
  delivery.reader.append({ a, b: a });
  await delivery.pass(60);

  expect(delivery.parked.first).toMatchObject([{ input, reason: "invalid" }]);
  expect(delivery.reader.settled.some(({ inputs }) => inputs.includes(other))).toBe(true);
});

test("more than 100,000 kept points of all inputs return to the buffer", () => {
  const parked = parkedInputs(testRuntime());
  const column = (of: InputId, count: number) => {
    const numbers = new Float64Array(count);
    return extractedColumn(of, numbers, numbers, numbers);
  };
  parked.keep([column(input, 60_000), column(other, 40_000)]);
  expect(parked.takeAllKept(() => false)).toEqual([]);

  parked.keep([column(other, 40_001)]);
  expect(parked.takeAllKept(() => false).map(({ count }) => count)).toEqual([60_000, 40_001]);
  expect([parked.takeKept(input), parked.takeKept(other)]).toEqual([[], []]);
});
