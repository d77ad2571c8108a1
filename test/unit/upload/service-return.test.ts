// After an outage the service soon gets the first request. A service that only accepts connections gets no extra
// requests.
import { expect, test } from "vitest";
import type { SignalId } from "../../../src/core/point.ts";
import type { Frame, Outcome } from "../../../src/core/sink.ts";
import { SimulatedDelivery } from "../../support/simulated-delivery.ts";

const stored = ({ inputs }: Frame): Outcome => ({
  kind: "accepted",
  signals: new Map(inputs.map((input) => [input, "c".repeat(20) as SignalId])), // the service's format
});
const unanswered: Outcome = { kind: "unavailable", cause: new Error("connection refused") };

test.for([3, 8, 20, 61, 300])("a service that returns after %i s gets a request within 2 s", async (outage) => {
  let away = true;
  const answer = (frame: Frame) => (away ? unanswered : stored(frame));
  await using delivery = await SimulatedDelivery.start(answer, undefined, 2 ** 20, () => !away);
  await delivery.pass(5, "t");
  for (let round = 0; round < 10; round++) {
    away = true;
    await delivery.pass(outage, "t");
    await delivery.clock.advance(97 * round);
    away = false;
    const back = delivery.clock.monotonic() / 1_000;
    await delivery.pass(2, "t");
    expect(delivery.requests.some(({ outcome, second }) => outcome === "accepted" && second >= back)).toBe(true);
  }
  const starts = delivery.requests.map(({ second }) => second);
  expect(Math.min(...starts.slice(1).map((start, i) => start - starts[i]!))).toBeGreaterThanOrEqual(1);
});

test("a service that returns while a request waits for a connection gets another one when that fails", async () => {
  let away = true;
  // The network drops packets, so a request's connection fails only after 20 s, even if the service is back by then.
  const answer = async (frame: Frame): Promise<Outcome> => {
    if (!away) return stored(frame);
    await delivery.clock.sleep(20_000, new AbortController().signal);
    return unanswered;
  };
  await using delivery = await SimulatedDelivery.start(answer, undefined, 2 ** 20, () => !away);
  for (let round = 0; round < 15; round++) {
    away = true;
    await delivery.pass(120 + round, "t");
    away = false;
    const back = delivery.clock.monotonic() / 1_000;
    await delivery.pass(22, "t");
    expect(delivery.requests.some(({ outcome, second }) => outcome === "accepted" && second >= back)).toBe(true);
  }
});

test.for<readonly [string, () => boolean]>([
  ["takes every connection and answers none", () => true],
  ["takes no connection", () => false],
])("a service that %s gets a request every 8 s on average, as without probes", async ([, connects]) => {
  await using delivery = await SimulatedDelivery.start(() => unanswered, undefined, 2 ** 20, connects);
  await delivery.pass(600, "t");
  // Pauses of 1 to 15 s, distributed evenly: 75 requests.
  expect(delivery.requests.length).toBeLessThan(95);
});

test("a wait requested by the service lasts until its end, also when it refused connections meanwhile", async () => {
  let connections = 0;
  const answer = (): Outcome => ({ kind: "throttled", retryAfterMs: 60_000 });
  await using delivery = await SimulatedDelivery.start(answer, undefined, 2 ** 20, () => connections++ % 2 === 1);
  await delivery.pass(62, "t");
  expect(delivery.requests.map(({ outcome }) => outcome)).toEqual(["throttled", "throttled"]);
});

test("the backlog of a minute of outage is stored with four requests, newer points included", async () => {
  let away = false;
  const answer = (frame: Frame) => (away ? unanswered : stored(frame));
  // A request can hold the points of a third of the inputs for the whole outage.
  await using delivery = await SimulatedDelivery.start(answer, undefined, 96 * 2 ** 10, () => !away);
  const tags = 100;
  const stepMs = 200;
  let published = 0;
  /** Appends a point to each input twice a second, ten inputs at a time. */
  const pass = async (seconds: number, until: () => boolean = () => false) => {
    for (let ms = 0; ms < seconds * 1_000 && !until(); ms += stepMs) {
      const now = delivery.clock.now();
      const points: Record<string, [number, number][]> = {};
      for (let i = 0; i < (2 * tags * stepMs) / 1_000; i++)
        points[`line.tag${published++ % tags}`] = [[now + Math.floor(i / 10) * 50_000, i]];
      delivery.reader.append(points);
      await delivery.clock.advance(stepMs);
    }
  };
  const accepted = () => delivery.requests.filter(({ outcome }) => outcome === "accepted");
  const isUsual = () => accepted().reduce((sum, { points }) => sum + points, 0) >= published - 2 * 2 * tags;
  await pass(10);
  away = true;
  await pass(60);
  away = false;
  const before = accepted().length;

  await pass(20, isUsual);

  expect(isUsual()).toBe(true);
  expect(accepted().length - before).toBeLessThanOrEqual(4);
});
