import { expect, test } from "vitest";
import { CellBudget } from "../../../src/service/query/frame-builder.ts";
import { joinedBlocks } from "../../../src/service/store/point-run.ts";

test("an answer that would be too large is refused before all its points are read", () => {
  const block = { times: new Float64Array(1_000_000), values: new Float64Array(1_000_000) };
  let read = 0;
  const endless = function* () {
    for (; read < 1_000; read++) yield block;
  };
  const budget = new CellBudget();
  joinedBlocks(budget.counted([block, block]));
  expect(() => joinedBlocks(budget.counted(endless()))).toThrow(
    expect.objectContaining({
      details: { params: { data: [expect.stringMatching(/more than 5000000 values: narrow the window/)] } },
    }),
  );
  expect(read).toBe(3);
});
