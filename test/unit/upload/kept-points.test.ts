// Points of a distrusted input that are kept in memory while others of it return to the buffer.
import { expect, test } from "vitest";
import type { InputId } from "../../../src/core/point.ts";
import type { Frame, Outcome } from "../../../src/core/sink.ts";
import { SimulatedDelivery, storesOthers } from "../../support/simulated-delivery.ts";

const away: Outcome = { kind: "unavailable", cause: new Error("away") };
const invalid: Outcome = { kind: "refused", code: -32_602, reason: "invalid", inputs: [] };
const stores = storesOthers(() => false);

/** Answers requests with values of `a` by `answer`, and accepts all others. Undefined: accepted. */
function openService(answer: (values: readonly number[]) => Outcome | undefined) {
  const stored = new Set<number>();
  const send = (frame: Frame): Outcome => {
    const { data } = JSON.parse(Buffer.from(frame.body).toString("utf8")).params;
    const all: readonly (number | null)[] = data.series["a" as InputId] ?? [];
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
