// A backlog of series with different times that can be sent within `maxLag`: old and new points go together, since a
// frame carries many points of few such series, or few points of many.
import { expect, test } from "vitest";
import type { Frame, Outcome } from "../../../src/core/sink.ts";
import { MemoryReader } from "../../support/memory-reader.ts";
import { ManualClock, testRuntime } from "../../support/runtime.ts";
import { SimulatedDelivery, storesOthers } from "../../support/simulated-delivery.ts";

const stored = storesOthers(() => false);
const maxLag = 10;

/** Two series have a point every 2 ms, as messages of a broker have. */
async function afterMinute(series: number, takesMs: number, seconds: number) {
  const clock = new ManualClock();
  const reader = new MemoryReader();
  let next = 0;
  const pass = async (ticks: number) => {
    for (let tick = 0; tick < ticks; tick++) {
      await clock.advance(100);
      const points: Record<string, [number, number][]> = {};
      for (let i = 0; i < series / 5; i++, next++)
        (points[`t${next % series}`] ??= []).push([clock.now() - 100_000 + Math.floor(i / 2) * 2_000, next]);
      reader.append(points);
    }
  };
  await pass(600);
  const began = clock.now();
  /** In seconds: since the service returned, and the age of the oldest of all points and of the fresh ones. */
  const requests: { readonly at: number; readonly oldest: number; readonly oldestFresh: number }[] = [];
  const answer = async (frame: Frame): Promise<Outcome> => {
    await clock.sleep(takesMs, new AbortController().signal);
    const text = Buffer.from(frame.body).toString("utf8");
    const times = [...text.matchAll(/"(\d{4}-[^"]+Z)"/g)].map(([, time = ""]) => Date.parse(time) * 1_000);
    const age = (of: readonly number[]) => (clock.now() - of.reduce((a, b) => Math.min(a, b), clock.now())) / 1e6;
    const fresh = times.filter((time) => time >= began);
    requests.push({ at: (clock.now() - began) / 1e6, oldest: age(times), oldestFresh: age(fresh) });
    return stored(frame);
  };
  const before = { clock, reader, runtime: testRuntime({ clock }) };
  await using _delivery = await SimulatedDelivery.start(answer, before, 2 ** 20);
  await pass(seconds * 10);
  while (!reader.empty) await clock.advance(1_000);
  return requests;
}

test("a minute of 350 series that takes 7 requests is sent in 10 s, and no new point is later than maxLag", async () => {
  const requests = await afterMinute(350, 0, 25);

  expect(Math.max(...requests.map(({ oldestFresh }) => oldestFresh))).toBeLessThan(maxLag);
  expect(requests.findLast(({ oldest }) => oldest > 2)?.at).toBeLessThanOrEqual(10);
});

test("also where a request takes 2 s, no new point of 100 series is later than maxLag", async () => {
  const requests = await afterMinute(100, 2_000, 60);

  expect(Math.max(...requests.map(({ oldestFresh }) => oldestFresh))).toBeLessThan(maxLag);
  expect(requests.length).toBeGreaterThan(20);
});
