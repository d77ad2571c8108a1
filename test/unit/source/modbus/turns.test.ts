import { expect, test } from "vitest";
import { fairMutex } from "../../../../src/source/modbus/connection/breaker.ts";

const { signal } = new AbortController();

test("turns are granted in the order of requests, one at a time", async () => {
  const turns = fairMutex();
  const order: string[] = [];
  let inside = 0;
  const talk = async (name: string, unit: number) => {
    for (let i = 0; i < 2; i++) {
      using _turn = await turns.take(unit, signal);
      expect(++inside).toBe(1);
      order.push(name);
      await Promise.resolve();
      inside--;
    }
  };
  await Promise.all([talk("a", 1), talk("b", 2), talk("c", 3)]);
  expect(order).toEqual(["a", "b", "c", "a", "b", "c"]);
});

test("a unit with many requests gets no more turns than the others, and keeps their order", async () => {
  const turns = fairMutex();
  const order: string[] = [];
  const first = await turns.take(9, signal);
  const asking = [
    ["a1", 1],
    ["a2", 1],
    ["a3", 1],
    ["b1", 2],
    ["c1", 3],
    ["b2", 2],
  ] as const;
  const done = asking.map(async ([name, unit]) => {
    using _turn = await turns.take(unit, signal);
    order.push(name);
  });
  first[Symbol.dispose]();
  await Promise.all(done);
  expect(order).toEqual(["a1", "b1", "c1", "a2", "b2", "a3"]);
});

test("an aborted wait gets no turn, and the next one does", async () => {
  const turns = fairMutex();
  const first = await turns.take(1, signal);
  const stop = new AbortController();
  const second = turns.take(1, stop.signal);
  const third = turns.take(1, signal);
  stop.abort(new Error("no time"));
  await expect(second).rejects.toThrow("no time");
  first[Symbol.dispose]();
  (await third)[Symbol.dispose]();
  expect(turns.waiting).toBe(0);
});
