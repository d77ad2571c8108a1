// The forward lag is the age of the waiting points, not the time since the buffer was last empty.
import { expect, test } from "vitest";
import { ForwardLag } from "../../../../src/buffer/jetstream/forwarder.ts";
import { eventually } from "../../../support/eventually.ts";
import { append, memoryWorld } from "../../../support/stream-world.ts";

test("an agent into which points always come is not behind as long as it hands over all of them", async () => {
  const { stream, node } = memoryWorld();
  using gateway = node("gw1");
  await using collector = await gateway.start();
  const { clock } = collector.runtime;
  const publications: { readonly at: number; readonly lagMs: number }[] = [];
  let second = 0;
  // The buffer is never empty: the next point arrives while one is published.
  stream.before = async (call) => {
    if (call !== "publish") return;
    publications.push({ at: clock.monotonic(), lagMs: collector.forwarder.status.lagMs });
    await append(collector, { a: [[++second, second]] });
  };
  await append(collector, { a: [[0, 0]] });
  await eventually(() => publications.length >= 20);
  stream.before = () => {};

  // A point is published with the second message after its arrival at the latest.
  for (const [i, { at, lagMs }] of publications.entries())
    expect(lagMs).toBeLessThanOrEqual(at - (publications[i - 3] ?? publications[0]!).at + (i < 4 ? 1e4 : 0));
  await collector.forwarded();
  expect(collector.forwarder.status.lagMs).toBe(0);
});

test("the lag grows while nothing is handed over, and shrinks as points leave", () => {
  const lag = new ForwardLag();
  const at = (second: number, appendedPoints: number, unsettledPoints: number) =>
    lag.measure(second * 1_000, { appendedPoints, unsettledPoints }) / 1_000;
  expect(at(0, 100, 100)).toBe(0);
  for (let second = 1; second <= 3_000; second++) expect(at(second, 100 + second, 100 + second)).toBe(second);
  // The waiting points arrived within the last 1,000 s.
  expect(at(3_000, 3_100, 1_000)).toBeGreaterThan(990);
  expect(at(3_000, 3_100, 1_000)).toBeLessThan(1_010);
  expect(at(3_001, 3_101, 1)).toBe(0);
  expect(at(3_002, 3_101, 0)).toBe(0);
});
