// Tags whose values the service refuses without naming them, among good ones: what arrives, and when.
import { expect, test } from "vitest";
import type { InputId } from "../../../src/core/point.ts";
import type { Frame, Outcome } from "../../../src/core/sink.ts";
import { SimulatedDelivery, storesOthers } from "../../support/simulated-delivery.ts";

const good = Array.from({ length: 20 }, (_, i) => `tag${i}`);
const invalid: Outcome = { kind: "refused", code: -32_602, reason: "invalid", inputs: [] };

/** A service that refuses each request with a point for which `isBad` is true, and names no input. */
function openService(isBad: (input: InputId, second: number) => boolean) {
  /** Input and time of each stored value. */
  const stored = new Set<string>();
  const answer = (frame: Frame): Outcome => {
    const { data } = JSON.parse(Buffer.from(frame.body).toString("utf8")).params;
    const points: [InputId, string][] = frame.inputs.flatMap((input) =>
      data.times.flatMap((time: string, i: number) => (data.series[input][i] === null ? [] : [[input, time]])),
    );
    if (points.some(([input, time]) => isBad(input, Date.parse(time) / 1_000 - start))) return invalid;
    for (const [input, time] of points) stored.add(`${input} ${time}`);
    return storesOthers(() => false)(frame);
  };
  const count = (input: string) => [...stored].filter((key) => key.startsWith(`${input} `)).length;
  return { answer, stored, count };
}
const start = 1_767_225_600;

/** The share of the requests from `from` on that were refused. */
const refusedShare = ({ requests }: SimulatedDelivery, from: number) => {
  const lately = requests.slice(from);
  return lately.filter(({ outcome }) => outcome === "refused").length / lately.length;
};

test("with one tag that is always refused, the points of 20 others arrive, and it is tried seldom", async () => {
  const { answer, stored } = openService((input) => input === "bad");
  await using delivery = await SimulatedDelivery.start(answer);
  await delivery.pass(600, ...good.slice(0, 10), "bad", ...good.slice(10));

  expect(stored.size).toBeGreaterThanOrEqual(0.95 * good.length * 600);
  expect(delivery.parked.first).toMatchObject([{ input: "bad", reason: "invalid" }]);
  expect(delivery.state.state).not.toBe("holding");
  expect(refusedShare(delivery, 300)).toBeLessThan(0.1);
});

test.each([0, 10, 20])(
  "after an outage of 60 s, the first good point arrives within 15 s, with the bad tag at place %i",
  async (place) => {
    const { answer, stored } = openService((input) => input === "bad");
    const inputs = good.toSpliced(place, 0, "bad");
    await using before = await SimulatedDelivery.start(() => ({ kind: "unavailable", cause: new Error("away") }));
    await before.pass(60, ...inputs);
    await before.stop();
    await using delivery = await SimulatedDelivery.start(answer, before);
    await delivery.pass(15, ...inputs);

    expect(stored.size).toBeGreaterThan(0);
    await delivery.pass(120, ...inputs);
    expect(stored.size).toBeGreaterThanOrEqual(0.95 * good.length * 195);
  },
);

test("with ten refused tags among 30 all others arrive, and the ten take one request in five at most", async () => {
  const { answer, stored } = openService((input) => input.startsWith("bad"));
  const bad = Array.from({ length: 10 }, (_, i) => `bad${i}`);
  await using delivery = await SimulatedDelivery.start(answer);
  await delivery.pass(600, ...good, ...bad);

  expect(delivery.parked.refused).toBe(bad.length);
  expect(stored.size).toBeGreaterThanOrEqual(0.95 * good.length * 600);
  const from = delivery.requests.length;
  await delivery.pass(300, ...good, ...bad);
  expect(refusedShare(delivery, from)).toBeLessThanOrEqual(0.2);
});

test("a tag that is accepted again brings all of its points but those that were refused one by one", async () => {
  let isAccepted = false;
  const { answer, count } = openService((input) => !isAccepted && input === "bad");
  await using delivery = await SimulatedDelivery.start(answer);
  await delivery.pass(300, ...good, "bad");
  const { refused } = delivery.reader;
  isAccepted = true;
  await delivery.pass(400);

  expect(delivery.reader.empty).toBe(true);
  expect(delivery.parked.refused).toBe(0);
  expect(count("bad")).toBe(300 - refused);
  expect(refused).toBeLessThan(50);
});

test.each([5, 100])(
  "of a tag with %i bad values in a row just these are refused, and later ones come first",
  async (many) => {
    const { answer, count } = openService((input, second) => input === "tag3" && second >= 60 && second < 60 + many);
    await using delivery = await SimulatedDelivery.start(answer);
    await delivery.pass(60 + many, ...good);
    const before = count("tag3");
    await delivery.pass(600, ...good);
    expect(count("tag3")).toBeGreaterThan(before + 100);
    await delivery.pass(900, "tag0");

    expect(delivery.reader.empty).toBe(true);
    expect(delivery.reader.refused).toBe(many);
    expect([count("tag0"), count("tag3")]).toEqual([60 + many + 600 + 900, 60 + 600]);
  },
);

test.each([1, 20])(
  "where the values of all of %i tags were bad for 5 min, later ones arrive in 5 min",
  async (tags) => {
    const { answer, stored } = openService((_, second) => second >= 60 && second < 360);
    const inputs = good.slice(0, tags);
    await using delivery = await SimulatedDelivery.start(answer);
    await delivery.pass(360, ...inputs);
    const before = stored.size;
    await delivery.pass(300, ...inputs);

    expect(stored.size).toBeGreaterThan(before + tags);
  },
);
