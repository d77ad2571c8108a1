import { expect, test } from "vitest";
import { Turns } from "../../../../src/source/modbus/turns.ts";

const { signal } = new AbortController();

test("turns go round in the order they were asked for, one at a time", async () => {
  const turns = new Turns();
  const order: string[] = [];
  let inside = 0;
  const talk = async (name: string) => {
    for (let i = 0; i < 2; i++) {
      using _turn = await turns.take(signal);
      expect(++inside).toBe(1);
      order.push(name);
      await Promise.resolve();
      inside--;
    }
  };
  await Promise.all([talk("a"), talk("b"), talk("c")]);
  expect(order).toEqual(["a", "b", "c", "a", "b", "c"]);
});

test("who gives up waiting does not get a turn, and the next one does", async () => {
  const turns = new Turns();
  const first = await turns.take(signal);
  const stop = new AbortController();
  const second = turns.take(stop.signal);
  const third = turns.take(signal);
  stop.abort(new Error("no time"));
  await expect(second).rejects.toThrow("no time");
  first[Symbol.dispose]();
  (await third)[Symbol.dispose]();
  expect(turns.waiting).toBe(0);
});
