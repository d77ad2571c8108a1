// Which blocks count as settled while late points wait for the points in their way.
import { expect, test } from "vitest";
import type { Block, BlockId } from "../../../src/core/buffer.ts";
import type { InputId } from "../../../src/core/point.ts";
import { Window } from "../../../src/upload/window.ts";

const input = "a" as InputId;

const block = (id: number, times: readonly number[], late = false): Block => ({
  id: id as BlockId, // as the buffer would number it
  series: [{ input, times: Float64Array.from(times), values: Float64Array.from(times), late }],
});

test("a block of which a late point still waits is not settled with the points of it that did not wait", () => {
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
