import { expect, test } from "vitest";
import { Block } from "../../../src/core/block.ts";
import type { InputId } from "../../../src/core/point.ts";
import { framesOf, windowOf } from "../../support/packing.ts";

const seriesOf = (count: number) =>
  Array.from({ length: count }, (_, i) => ({
    input: `line.${i}` as InputId,
    times: Float64Array.of(i),
    values: Float64Array.of(i),
  }));

test("after a burst of many inputs idle queues are released, and polled inputs keep theirs", () => {
  const inputs = 6_000;
  const window = windowOf(seriesOf(inputs));

  const sent = framesOf(window, 65_536).flatMap(({ parts }) => parts.sources.map(({ input }) => input));

  expect(new Set(sent).size).toBe(inputs);
  const polled = 5_000;
  const before = [...window.queues("live")].slice(0, polled);
  for (let id = 3; id < 200; id++) {
    window.add("live", Block.of(id as never, seriesOf(polled)), 0);
    for (const queue of window.filled("live")) window.settle(queue, queue.count);
  }
  expect([...window.queues("live")].every((queue, i) => queue === before[i])).toBe(true);
  expect([...window.queues("live")].length).toBe(polled);
  window.add("live", Block.of(2 as never, seriesOf(inputs)), 0);
  expect(framesOf(window, 65_536).flatMap(({ parts }) => parts.sources).length).toBe(inputs);
});

test("the backlog lane keeps no empty queue", () => {
  const window = windowOf(seriesOf(100));
  window.add("backlog", Block.of(2 as never, seriesOf(100)), 0);
  for (const lane of ["live", "backlog"] as const)
    for (const queue of window.filled(lane)) window.settle(queue, queue.count);
  const live = [...window.queues("live")];
  for (let id = 3; id < 200; id++) {
    window.add("live", Block.of(id as never, seriesOf(10)), 0);
    for (const queue of window.filled("live")) window.settle(queue, queue.count);
  }
  expect([...window.queues("backlog")]).toEqual([]);
  expect([...window.queues("live")]).toEqual(live);
});
