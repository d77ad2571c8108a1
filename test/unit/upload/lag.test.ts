// The lag that users watch is no less than that of the points which the service receives.
import { expect, test } from "vitest";
import type { Frame, Outcome } from "../../../src/core/sink.ts";
import { MemoryReader } from "../../support/memory-reader.ts";
import { ManualClock, testRuntime } from "../../support/runtime.ts";
import { SimulatedDelivery, storesOthers } from "../../support/simulated-delivery.ts";

const stored = storesOthers(() => false);

test("while more points come than can be sent, the lag is that of the oldest point since delivery began", async () => {
  const clock = new ManualClock();
  const reader = new MemoryReader();
  const seen: { readonly late: number; readonly lag: number }[] = [];
  const over = new AbortController();
  const answer = async (frame: Frame): Promise<Outcome> => {
    await clock.sleep(1_500, over.signal).catch(() => {});
    const text = Buffer.from(frame.body).toString("utf8");
    const times = text.matchAll(/"(\d{4}-[^"]+Z)"/g).map(([, time = ""]) => Date.parse(time));
    const oldest = times.reduce((a, b) => Math.min(a, b), Number.POSITIVE_INFINITY);
    seen.push({ late: clock.now() / 1_000 - oldest, lag: delivery.state.lagMs });
    return stored(frame);
  };
  await using delivery = await SimulatedDelivery.start(
    answer,
    { clock, reader, runtime: testRuntime({ clock }) },
    65_536,
  );
  // Ends the request in flight before the delivery stops.
  using _request = { [Symbol.dispose]: () => over.abort() };
  let next = 0;
  const pass = async (ticks: number, series: number) => {
    for (let tick = 0; tick < ticks; tick++) {
      await clock.advance(100);
      const points: Record<string, [number, number][]> = {};
      for (let i = 0; i < series / 5; i++, next++)
        (points[`t${next % series}`] ??= []).push([clock.now() - 100_000 + i * 500, next]);
      reader.append(points);
    }
  };
  await pass(350, 600);
  expect(Math.max(...seen.map(({ late }) => late))).toBeGreaterThan(25_000);
  expect(seen.filter(({ late, lag }) => lag < late - 5_000)).toEqual([]);
  // Once fewer come, what is left is sent, and the lag is that of fresh points again.
  for (let seconds = 0; seconds < 600 && delivery.state.lagMs > 5_000; seconds++) await pass(20, 5);
  expect(delivery.state.lagMs).toBeLessThan(5_000);
});

test("once the service is back, the backlog of its outage is not in the lag", { timeout: 60_000 }, async () => {
  const clock = new ManualClock();
  const reader = new MemoryReader();
  let isAway = true;
  const answer = (frame: Frame): Outcome =>
    isAway ? { kind: "unavailable", cause: new Error("HTTP 503"), isServerError: true } : stored(frame);
  await using delivery = await SimulatedDelivery.start(
    answer,
    { clock, reader, runtime: testRuntime({ clock }) },
    65_536,
  );
  let next = 0;
  const pass = async (seconds: number) => {
    const values = Array.from({ length: 5 }, (_, i): [number, number] => [clock.now() + i * 1e6, next++]);
    reader.append(Object.fromEntries(Array.from({ length: 1_000 }, (_, i) => [`t${i}`, values])));
    await clock.advance(seconds * 1_000);
  };
  for (let i = 0; i < 120; i++) await pass(5);
  expect(delivery.state.lagMs).toBeGreaterThan(500_000);
  isAway = false;
  for (let i = 0; i < 4; i++) await pass(5);
  expect(delivery.state.lagMs).toBeLessThan(60_000);
  expect(reader.empty).toBe(false);
});
