// service.interval: few requests for metered connections, and no unnecessary delay.
import { expect, test } from "vitest";
import type { SignalId } from "../../../src/core/point.ts";
import type { Frame, Outcome } from "../../../src/core/sink.ts";
import { SimulatedDelivery } from "../../support/simulated-delivery.ts";

const stored = ({ inputs }: Frame): Outcome => ({
  kind: "accepted",
  signals: new Map(inputs.map((input) => [input, "c".repeat(20) as SignalId])), // the service's format
});
const unanswered: Outcome = { kind: "unavailable", cause: new Error("connection refused") };
const minute = 60_000;

function spacing(requests: readonly { readonly second: number }[]): readonly number[] {
  return requests.slice(1).map(({ second }, i) => second - (requests[i]?.second ?? 0));
}

test("points of a minute go out with one request a minute, all of them", async () => {
  await using delivery = await SimulatedDelivery.start(stored, undefined, 2 ** 20, undefined, minute);
  await delivery.pass(600, "a", "b");

  expect(delivery.requests.length).toBeLessThanOrEqual(11);
  expect(Math.min(...spacing(delivery.requests))).toBeGreaterThanOrEqual(59);
  expect(Math.max(...spacing(delivery.requests))).toBeLessThan(62);
  const points = delivery.requests.reduce((sum, { points: of }) => sum + of, 0);
  expect(points).toBeGreaterThan(2 * (600 - 62));
  expect(delivery.state).toMatchObject({ state: expect.stringMatching(/idle|sending/), lastError: undefined });
});

test("what does not fit into a request follows at once, and then the interval holds again", async () => {
  await using delivery = await SimulatedDelivery.start(stored, undefined, 8_192, undefined, minute);
  await delivery.pass(5, "t");
  // The times have nothing in common, so a request of 8 KiB holds a few hundred of them.
  const now = delivery.clock.now();
  delivery.reader.append({ many: Array.from({ length: 4_000 }, (_, i) => [now - 7_200e6 + i * 1_000_003, i]) });
  const before = delivery.requests.length;
  await delivery.pass(130, "t");

  const gaps = spacing(delivery.requests.slice(before));
  expect(gaps.filter((gap) => gap < 2).length).toBeGreaterThan(10);
  await delivery.pass(300, "t");
  expect(
    spacing(delivery.requests)
      .slice(-3)
      .every((gap) => gap >= 59),
  ).toBe(true);
  expect(delivery.requests.reduce((sum, { points }) => sum + points, 0)).toBeGreaterThan(4_300);
});

test("while the service is away, connections and requests are as rare as requests are wanted", async () => {
  let connections = 0;
  const connects = () => {
    connections++;
    return false;
  };
  await using delivery = await SimulatedDelivery.start(() => unanswered, undefined, 2 ** 20, connects, minute);
  await delivery.pass(3_600, "t");

  // A wait between two attempts takes 1 to 60 s, 30 s on average.
  expect(delivery.requests.length).toBeLessThan(180);
  // One connection with each attempt, and probes 45 to 75 s apart.
  expect(connections).toBeLessThan(delivery.requests.length + 80);
});

test("a stop does not wait for the interval; what waits is in the buffer for the next start", async () => {
  const first = await SimulatedDelivery.start(stored, undefined, 2 ** 20, undefined, minute);
  await first.pass(70, "t");
  const { length } = first.requests;
  await first.pass(30, "t");
  await first.stop();
  await using second = await SimulatedDelivery.start(stored, first, 2 ** 20, undefined, minute);
  await second.clock.advance(5_000);

  expect(first.requests.length).toBe(length);
  expect(second.reader.empty).toBe(true);
});

test("points that wait for the metadata of their input do not end the interval", async () => {
  const holds = (input: string) => input === "new";
  await using delivery = await SimulatedDelivery.start(stored, undefined, 2 ** 20, undefined, minute, holds);
  await delivery.pass(300, "a", "new");

  expect(delivery.requests.length).toBeLessThanOrEqual(6);
  expect(Math.min(...spacing(delivery.requests))).toBeGreaterThanOrEqual(59);
});

test("a corrected password is in use within 5 minutes, however long the interval is", async () => {
  let isCorrect = false;
  const answer = (frame: Frame): Outcome =>
    isCorrect ? stored(frame) : { kind: "unauthorized", reason: "HTTP 401", hint: "check service.auth" };
  await using delivery = await SimulatedDelivery.start(answer, undefined, 2 ** 20, undefined, 60 * minute);
  await delivery.pass(4 * 3_600, "t");
  const { length } = delivery.requests;
  expect(delivery.state.state).toBe("holding");
  // Each attempt carries the whole request, so they stay rare.
  expect(length).toBeLessThan(130);
  isCorrect = true;
  await delivery.pass(300, "t");

  expect(delivery.requests.slice(length).map(({ outcome }) => outcome)).toContain("accepted");
});
