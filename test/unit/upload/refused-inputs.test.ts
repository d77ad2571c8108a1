// Inputs that the service refuses among others that it accepts: which requests it gets, and what the operator sees.
import { expect, test } from "vitest";
import type { InputId } from "../../../src/core/point.ts";
import type { Frame } from "../../../src/core/sink.ts";
import { SimulatedDelivery, storesOthers } from "../../support/simulated-delivery.ts";

const many = Array.from({ length: 100 }, (_, i) => `tag${i}` as InputId);

/**
 * The number of requests in five minutes that contained a refused input in vain. Another input gets a point each
 * second.
 */
async function vainRequests(delivery: SimulatedDelivery, each?: (minute: number) => void): Promise<number> {
  const before = delivery.requests.length;
  for (let minute = 0; minute < 5; minute++) {
    each?.(minute);
    await delivery.pass(60, "good");
  }
  return delivery.requests.slice(before).filter(({ outcome }) => outcome === "partial").length;
}

test("retries of many refused inputs take at most one request in five", async () => {
  await using delivery = await SimulatedDelivery.start(storesOthers((input) => input !== "good"));
  delivery.append(...many);
  await delivery.pass(300, "good");
  expect(delivery.parked.refused).toBe(many.length);

  expect(await vainRequests(delivery)).toBeLessThanOrEqual(300 / 5);
});

test("when refused inputs are accepted again one by one, the others are not retried at once each time", async () => {
  const refused = new Set(many);
  let tried = 0;
  await using delivery = await SimulatedDelivery.start((frame) => {
    tried += frame.inputs.filter((input) => refused.has(input)).length;
    return storesOthers((input) => refused.has(input))(frame);
  });
  delivery.append(...many);
  await delivery.pass(300, "good");
  const triedIn = async (each?: (minute: number) => void) => {
    tried = 0;
    await vainRequests(delivery, each);
    return tried;
  };

  const usual = await triedIn();
  expect(await triedIn((minute) => refused.delete(many[minute]!))).toBeLessThan(1.5 * usual);
  expect(delivery.parked.refused).toBeLessThan(many.length);
});

test("when the service accepts many refused inputs again, all are stored within minutes", async () => {
  const refused = new Set(many);
  await using delivery = await SimulatedDelivery.start(storesOthers((input) => refused.has(input)));
  delivery.append(...many);
  await delivery.pass(600, "good");

  refused.clear();
  await delivery.pass(240, "good");

  expect(delivery.parked.refused).toBe(0);
  expect(delivery.reader.empty).toBe(true);
});

test("while only refused inputs are left to send, the log does not report that delivery continues", async () => {
  await using delivery = await SimulatedDelivery.start(storesOthers(() => true));
  for (let i = 0; i < 20; i++) {
    delivery.append(`tag${i}`);
    await delivery.pass(30);
  }

  expect(delivery.runtime.lines.map(({ message }) => message)).not.toContain("delivery goes on");
  expect(delivery.state).toMatchObject({ state: "holding", lastError: { current: true } });
});

test("one refused input is shown as such, not as a failure of delivery", async () => {
  await using delivery = await SimulatedDelivery.start(storesOthers((input) => input === "bad"));
  await delivery.pass(10, "good");
  delivery.append("bad");
  await delivery.pass(10);
  await delivery.pass(300, "good");

  expect(delivery.parked.first).toMatchObject([{ input: "bad", reason: "no such unit" }]);
  expect(delivery.runtime.lines.filter(({ message }) => message.startsWith("delivery "))).toEqual([]);
  expect(delivery.state.lastError).toBeUndefined();
});

test.each([
  ["413", { kind: "tooLarge" }],
  ["HTTP 500", { kind: "unavailable", cause: new Error("HTTP 500") }],
] as const)(
  "a point that is answered with %s whenever it is tried again does not hold up others",
  async (_, outcome) => {
    const stores = storesOthers(() => false);
    let isTaken = false;
    let refuses = true;
    await using delivery = await SimulatedDelivery.start((frame) => {
      if (!frame.inputs.includes("bad" as InputId) || isTaken) return stores(frame);
      return refuses ? storesOthers((input) => input === "bad")(frame) : outcome;
    });
    delivery.append("bad");
    await delivery.pass(3, "good");
    refuses = false;
    const before = delivery.requests.length;
    await delivery.pass(600, "good");

    expect(delivery.requests.slice(before).filter(({ outcome: kind }) => kind === "accepted").length).toBeGreaterThan(
      500,
    );
    expect(delivery.parked.refused).toBe(1);
    isTaken = true;
    await delivery.pass(400);
    expect(delivery.reader.empty).toBe(true);
  },
);

test.each([
  ["413", { kind: "tooLarge" }],
  ["HTTP 500", { kind: "unavailable", cause: new Error("HTTP 500") }],
  ["HTTP 403", { kind: "unauthorized", reason: "HTTP 403" }],
] as const)(
  "a point that is answered with %s once it is sent by itself does not hold up others",
  async (_, outcome) => {
    const stores = storesOthers(() => false);
    let isTaken = false;
    await using delivery = await SimulatedDelivery.start((frame) => {
      if (!frame.inputs.includes("bad" as InputId) || isTaken) return stores(frame);
      return frame.points > 1 ? { kind: "refused", code: -32_602, reason: "invalid", inputs: [] } : outcome;
    });
    delivery.append("bad", "good");
    await delivery.pass(600, "good");

    expect(delivery.requests.filter(({ outcome: kind }) => kind === "accepted").length).toBeGreaterThan(500);
    expect(delivery.parked.first).toMatchObject([{ input: "bad" }]);
    isTaken = true;
    await delivery.pass(400);
    expect(delivery.reader.empty).toBe(true);
  },
);

test.each([
  ["413", { kind: "tooLarge" }],
  ["HTTP 500", { kind: "unavailable", cause: new Error("HTTP 500") }],
  ["HTTP 403", { kind: "unauthorized", reason: "HTTP 403" }],
] as const)(
  "retries of many refused inputs take at most one request in five, also where they are answered with %s",
  async (_, outcome) => {
    const parked = new Set(many);
    let refuses = true;
    await using delivery = await SimulatedDelivery.start((frame) =>
      refuses || !frame.inputs.some((input) => parked.has(input))
        ? storesOthers((input) => parked.has(input))(frame)
        : outcome,
    );
    delivery.append(...many);
    await delivery.pass(30, "good");
    expect(delivery.parked.refused).toBe(many.length);
    refuses = false;
    const before = delivery.requests.length;
    await delivery.pass(300, "good");

    const stored = delivery.requests.slice(before).filter(({ outcome: kind }) => kind === "accepted");
    expect(stored.length).toBeGreaterThanOrEqual((300 * 4) / 5);
    expect(delivery.parked.refused).toBe(many.length);
  },
);

test("a retry found too large does not shrink the requests of others while larger ones are accepted", async () => {
  const others = Array.from({ length: 200 }, (_, i) => `good${i}`);
  const parked = new Set(many);
  let refuses = true;
  await using delivery = await SimulatedDelivery.start((frame) =>
    refuses || !frame.inputs.some((input) => parked.has(input))
      ? storesOthers((input) => parked.has(input))(frame)
      : { kind: "tooLarge" },
  );
  delivery.append(...many, ...others);
  await delivery.pass(3, ...others);
  expect(delivery.parked.refused).toBe(many.length);
  refuses = false;
  const before = delivery.requests.length;
  await delivery.pass(30, ...others);

  const later = delivery.requests.slice(before);
  expect(later.some(({ outcome, points }) => outcome === "tooLarge" && points > 1)).toBe(true);
  const stored = later.filter(({ outcome }) => outcome === "accepted");
  expect(Math.min(...stored.map(({ points }) => points))).toBeGreaterThanOrEqual(others.length);
});

test("points after a point that is accepted again do not delay others while the service fails on them", async () => {
  let refuses = true;
  let isTaken = false;
  await using delivery = await SimulatedDelivery.start((frame) => {
    const isBad = frame.inputs.includes("bad" as InputId);
    if (refuses || !isBad || isTaken || frame.points === 1)
      return storesOthers((input) => refuses && input === "bad")(frame);
    return { kind: "unavailable", cause: new Error("HTTP 500") };
  });
  const now = delivery.clock.now();
  delivery.reader.append({ bad: Array.from({ length: 50 }, (_, i) => [now + i, i]) });
  await delivery.pass(3, "good");
  expect(delivery.parked.refused).toBe(1);
  refuses = false;
  const before = delivery.requests.length;
  await delivery.pass(300, "good");

  const stored = delivery.requests.slice(before).filter(({ outcome }) => outcome === "accepted");
  expect(stored.length).toBeGreaterThanOrEqual((300 * 4) / 5);
  isTaken = true;
  await delivery.pass(400);
  expect(delivery.reader.empty).toBe(true);
});

test("when requests are smaller than a point of 32 inputs each, all refused points are stored once the service accepts them", async () => {
  const long = Array.from({ length: 40 }, (_, i) => `${"x".repeat(60)}${i}` as InputId);
  let refuses = true;
  const answer = storesOthers((input) => refuses && input !== "good");
  await using delivery = await SimulatedDelivery.start(answer, undefined, 1_500);
  delivery.append(...long);
  await delivery.pass(60, "good");
  expect(delivery.parked.refused).toBe(long.length);

  refuses = false;
  await delivery.pass(240, "good");

  expect(delivery.parked.refused).toBe(0);
  expect(delivery.reader.empty).toBe(true);
});

test("a restart finds many refused inputs again with a few requests", async () => {
  const refused = new Set(many.filter((_, i) => i % 3 === 0));
  const answer = storesOthers((input) => refused.has(input));
  const before = await SimulatedDelivery.start(answer);
  await before.pass(120, ...many, "good");
  await before.stop();
  await using delivery = await SimulatedDelivery.start(answer, before, 20_000);

  await delivery.pass(60, ...many, "good");

  // One request finds them, and each retry tries up to 32 of them.
  const vain = delivery.requests.filter(({ outcome }) => outcome === "partial");
  expect(vain.length).toBeLessThanOrEqual(1 + 60 / 5);
  expect(delivery.parked.refused).toBe(refused.size);
  expect(delivery.requests.filter(({ outcome }) => outcome === "accepted").length).toBeGreaterThan(45);
});

const fails = { kind: "unavailable", cause: new Error("HTTP 500"), isServerError: true } as const;
const failsOver = (isBad: (frame: Frame) => boolean) => (frame: Frame) =>
  isBad(frame) ? fails : storesOthers(() => false)(frame);
const accepted = ({ outcome }: { readonly outcome: string }) => outcome === "accepted";

test("a point on which the service fails in any request is found, parked and retried, and others continue", async () => {
  let isTaken = false;
  const bad = many[37]!;
  await using delivery = await SimulatedDelivery.start(failsOver(({ inputs }) => !isTaken && inputs.includes(bad)));
  delivery.append(...many);
  await delivery.pass(300, ...many);
  expect(delivery.parked.first).toMatchObject([{ input: bad, reason: "HTTP 500" }]);
  expect(delivery.parked.refused).toBe(1);
  expect(delivery.runtime.lines.filter(({ fields }) => fields.reason === "HTTP 500").length).toBeGreaterThan(0);

  const before = delivery.requests.length;
  await delivery.pass(60, ...many);
  const taken = delivery.requests.slice(before).filter(accepted);
  expect(taken.length).toBeGreaterThanOrEqual((60 * 4) / 5);
  expect(Math.max(...taken.map(({ points }) => points))).toBeGreaterThanOrEqual(many.length - 1);

  isTaken = true;
  await delivery.pass(400);
  expect(delivery.parked.refused).toBe(0);
  expect(delivery.reader.empty).toBe(true);
});

test("many inputs on which the service fails are found, and all others are delivered", async () => {
  const bad = new Set(many.filter((_, i) => i % 9 === 0));
  await using delivery = await SimulatedDelivery.start(
    failsOver(({ inputs }) => inputs.some((input) => bad.has(input))),
  );
  delivery.append(...many);
  await delivery.pass(600, ...many);

  expect(delivery.parked.refused).toBe(bad.size);
  const lately = delivery.requests.slice(-60).filter(accepted);
  expect(Math.max(...lately.map(({ inputs }) => inputs.length))).toBe(many.length - bad.size);
});

test("a service that answers 500 to everything parks nothing, and two requests after its return all is delivered", async () => {
  let isDown = true;
  await using delivery = await SimulatedDelivery.start(failsOver(() => isDown));
  delivery.append(...many);
  await delivery.pass(3_600);
  expect(delivery.state).toMatchObject({ state: "unreachable", points: 0 });

  isDown = false;
  await delivery.pass(60);
  expect(delivery.reader.empty).toBe(true);
  expect(delivery.requests.filter(accepted).map(({ points }) => points)).toEqual([1, many.length - 1]);
  expect(delivery.runtime.lines.map(({ message }) => message)).not.toContain(
    "the service does not take some inputs; their points stay in the buffer and are tried again",
  );
});

test("a point on which the service fails is found among points that the service refused together", async () => {
  const [bad, invalid] = [many[37]!, many[61]!];
  await using delivery = await SimulatedDelivery.start((frame) => {
    if (frame.inputs.includes(invalid)) return { kind: "refused", code: -32_602, reason: "invalid", inputs: [] };
    return failsOver(({ inputs }) => inputs.includes(bad))(frame);
  });
  delivery.append(...many);
  await delivery.pass(600, "good");

  expect(delivery.parked.first).toMatchObject([{ input: bad }]);
  // The other point was refused permanently.
  expect(delivery.reader.waiting + delivery.reader.leased).toBe(1);
});
