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

test("after a burst of many inputs no more than 4,096 queues are kept, and the inputs are sent again as before", () => {
  const inputs = 6_000;
  const window = windowOf(seriesOf(inputs));

  const sent = framesOf(window, 65_536).flatMap(({ parts }) => parts.map(({ queue }) => queue.input));

  expect(new Set(sent).size).toBe(inputs);
  expect([...window.queues("live")].length).toBe(4_096);
  window.add("live", Block.of(2 as never, seriesOf(inputs)), 0);
  expect(framesOf(window, 65_536).flatMap(({ parts }) => parts).length).toBe(inputs);
});
