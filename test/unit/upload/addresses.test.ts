// Names are resolved one query at a time, again after a minute, and a late answer is used.
import type { LookupAddress } from "node:dns";
import { expect, test } from "vitest";
import { Addresses } from "../../../src/upload/client/connections.ts";
import { ManualClock } from "../../support/runtime.ts";

const name = "service.plant.example";
const at = (address: string): LookupAddress => ({ address, family: address.includes(":") ? 6 : 4 });

/** A name server that answers on command. */
function asked() {
  const questions: PromiseWithResolvers<LookupAddress[]>[] = [];
  const clock = new ManualClock();
  const addresses = new Addresses(name, clock, () => {
    const question = Promise.withResolvers<LookupAddress[]>();
    questions.push(question);
    return question.promise;
  });
  const connect = (all = true) =>
    new Promise<unknown>((resolve) =>
      addresses.lookup(name, { all }, (error, found, family) => resolve(error ? error.message : (family ?? found))),
    );
  return { questions, clock, addresses, connect };
}

test("one lookup is in flight at a time, and all concurrent callers share its answer", async () => {
  const { questions, connect } = asked();
  const first = connect();
  const second = connect();
  const single = connect(false);
  expect(questions.length).toBe(1);
  questions[0]?.resolve([at("10.0.0.1"), at("fd00::1")]);
  expect(await Promise.all([first, second, single])).toEqual([
    [at("10.0.0.1"), at("fd00::1")],
    [at("10.0.0.1"), at("fd00::1")],
    4,
  ]);
});

test("an answer that took 25 s is valid for 25 s more, an immediate one is looked up again", async () => {
  const { questions, clock, connect } = asked();
  const first = connect();
  await clock.advance(25_000);
  questions[0]?.resolve([at("10.0.0.1")]);
  await first;
  await clock.advance(24_000);
  expect(await connect()).toEqual([at("10.0.0.1")]);
  await clock.advance(1_000);
  const next = connect();
  expect(questions.length).toBe(2);
  questions[1]?.resolve([at("10.0.0.2")]);
  await next;
  void connect();
  expect(questions.length).toBe(3);
});

test("a failed lookup is repeated at once", async () => {
  const { questions, clock, connect } = asked();
  const first = connect();
  await clock.advance(25_000);
  questions[0]?.reject(new Error("no such name"));
  expect(await first).toBe("no such name");
  void connect();
  expect(questions.length).toBe(2);
});

test("the address of an open connection is looked up each minute; a failed lookup changes nothing", async () => {
  const { questions, clock, addresses, connect } = asked();
  expect(addresses.leadTo("10.0.0.9")).toBe(true);
  const first = connect();
  questions[0]?.resolve([at("10.0.0.1"), at("10.0.0.2")]);
  await first;
  await clock.advance(59_000);
  addresses.refresh();
  expect(questions.length).toBe(1);
  await clock.advance(1_000);
  addresses.refresh();
  addresses.refresh();
  expect(questions.length).toBe(2);
  questions[1]?.reject(new Error("no answer"));
  await clock.advance(0);
  expect([addresses.leadTo("10.0.0.2"), addresses.leadTo("10.0.0.9"), addresses.leadTo(undefined)]).toEqual([
    true,
    false,
    true,
  ]);
  await clock.advance(60_000);
  addresses.refresh();
  questions[2]?.resolve([at("10.0.0.9")]);
  await clock.advance(0);
  expect([addresses.leadTo("10.0.0.2"), addresses.leadTo("10.0.0.9")]).toEqual([false, true]);
});

test("a literal IP address is not looked up", async () => {
  const clock = new ManualClock();
  for (const literal of ["10.0.0.1", "fd00::1"]) {
    const addresses = new Addresses(literal, clock, () => Promise.reject(new Error("asked")));
    await clock.advance(120_000);
    expect(() => addresses.refresh()).not.toThrow();
    expect(addresses.leadTo(literal)).toBe(true);
  }
});
