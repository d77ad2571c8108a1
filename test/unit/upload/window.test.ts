// Which blocks count as settled while late points wait for earlier ones.
import { expect, test } from "vitest";
import { Block, type BlockId } from "../../../src/core/block.ts";
import type { InputId } from "../../../src/core/point.ts";
import { Window } from "../../../src/upload/window/window.ts";

const input = "a" as InputId;

const block = (id: number, times: readonly number[], late = false): Block =>
  // With an ID as the buffer assigns it.
  Block.of(id as BlockId, [{ input, times: Float64Array.from(times), values: Float64Array.from(times), late }]);

test("a block with a waiting late point is not settled with its other points", () => {
  const window = new Window(1_000);
  const settled = () => window.takeSettled().map(({ block: id }) => id);
  window.add("live", block(1, [10]), 0);
  window.add("backlog", block(2, [5, 10], true), 0);
  window.add("backlog", block(3, [20]), 0);
  const [live] = window.queues("live");
  const [backlog] = window.queues("backlog");
  window.settle(live!, 1);
  expect([settled(), backlog!.count, window.waiting]).toEqual([[1], 3, 0]);

  const settlements: number[][] = [];
  for (let i = 0; i < 3; i++) {
    window.settle(backlog!, 1);
    settlements.push(settled());
  }

  expect(settlements).toEqual([[], [2], [3]]);
});

test("a late point waits while the point that it replaces is queued for a retry", () => {
  const window = new Window(1_000);
  window.add("backlog", block(1, [10]), 0);
  window.add("backlog", block(2, [10], true), 0);
  const [backlog] = window.queues("backlog");

  const refused = window.extract(backlog!, 1);
  expect([window.points("backlog"), backlog!.count, window.waiting]).toEqual([0, 0, 1]);
  window.settleExtracted(refused, false);

  expect([window.points("backlog"), backlog!.count, window.waiting]).toEqual([1, 1, 0]);
  window.settle(backlog!, 1);
  expect(window.takeSettled().map(({ block: id }) => id)).toEqual([1, 2]);
});

test("the backlog is released together with a point that a late one in it may replace", () => {
  const window = new Window(1_000);
  window.add("backlog", block(1, [10]), 0);
  window.add("backlog", block(2, [10], true), 0);
  const [backlog] = window.queues("backlog");

  window.forgetExtracted(window.extract(backlog!, 1));

  expect(window.takeReleased()).toEqual([1, 2]);
  expect([window.points("backlog"), window.waiting, window.open()]).toEqual([0, 0, []]);
});

test("a late point returns to the buffer while a refused point holds back the one that it replaces", () => {
  const window = new Window(1_000);
  const refusedInput = "b" as InputId;
  const series = (id: InputId) => ({ input: id, times: Float64Array.of(10), values: Float64Array.of(1), late: false });
  window.add("backlog", Block.of(1 as BlockId, [series(input), series(refusedInput)]), 0);
  const [, second] = window.queues("backlog");
  const refused = window.extract(second!, 1);
  for (const _ of window.forget("backlog"));
  expect([window.takeReleased(), window.holdsBack(refused)]).toEqual([[], true]);

  window.add("backlog", block(2, [10], true), 0);
  expect(window.takeReleased()).toEqual([2]);
  expect(window.points("backlog")).toBe(0);

  window.settleExtracted(refused, true);
  expect(window.takeReleased()).toEqual([1]);
});

test("a backlog without late points is kept", () => {
  const window = new Window(1_000);
  window.add("backlog", block(1, [10]), 0);
  window.add("backlog", block(2, [20]), 0);
  const [backlog] = window.queues("backlog");

  window.forgetExtracted(window.extract(backlog!, 1));

  expect(window.takeReleased()).toEqual([1]);
  expect(window.points("backlog")).toBe(1);
});

test("a late point waits while the live point that it replaces is queued for a retry", () => {
  const window = new Window(1_000);
  window.add("live", block(1, [10]), 0);
  window.add("backlog", block(2, [10], true), 0);
  window.add("backlog", block(3, [10], true), 0);
  const [live] = window.queues("live");

  const refused = window.extract(live!, 1);
  expect([window.points("backlog"), window.waiting]).toEqual([0, 2]);
  window.settleExtracted(refused, true);

  expect([window.points("backlog"), window.waiting]).toEqual([2, 0]);
});

test("points of a series arrive after its queue was removed, whatever series came before them", () => {
  const window = new Window(1_000);
  const [a, b, other] = ["a", "b", "c"] as InputId[];
  let id = 0;
  const add = (...inputs: (InputId | undefined)[]) => {
    const column = { times: Float64Array.of(++id), values: Float64Array.of(id), late: false };
    window.add(
      "backlog",
      Block.of(
        id as BlockId,
        inputs.map((each) => ({ ...column, input: each! })),
      ),
      0,
    );
  };
  const queued = () => [...window.queues("backlog")].map((queue) => [queue.input, queue.count]);
  add(a, b);
  const [, second] = window.queues("backlog");
  window.settle(second!, 1);
  // Queues without points are removed after some blocks.
  add(other);
  while (queued().length > 2) add(other);

  add(a, b);

  expect(queued()).toContainEqual(["b", 1]);
});
