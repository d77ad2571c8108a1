// The mapping from a queue's points to their blocks, compared with a plain list of one number per point.
import { expect, test } from "vitest";
import { Block, type BlockId } from "../../../src/core/block.ts";
import type { InputId } from "../../../src/core/point.ts";
import { BlockRuns } from "../../../src/upload/series/block-runs.ts";
import { Window } from "../../../src/upload/window/window.ts";
import { seeded } from "../../support/runtime.ts";

const firstSeed = Number(process.env["TAGFERRY_SEED"] ?? 1);
const runs = Number(process.env["TAGFERRY_RUNS"] ?? 200);

/** The largest number of points, up to `count`, that ends at the end of a block. */
function wholeOf(blocks: readonly number[], count: number): number {
  for (let most = Math.min(count, blocks.length); most > 0; most--)
    if (most === blocks.length || blocks[most] !== blocks[most - 1]) return most;
  return 0;
}

test("runs of blocks give for each point the same result as a list of blocks", () => {
  for (let seed = firstSeed; seed < firstSeed + runs; seed++) {
    const random = seeded(seed);
    const below = (limit: number) => Math.floor(random() * limit);
    const blocks = new BlockRuns();
    const plain: number[] = [];
    let newest = -(2 ** 31);
    let arrived = 0;
    for (let step = 0; step < 60; step++) {
      const place = `seed ${seed}, step ${step}`;
      if (below(3) > 0) {
        // Mostly polled series: the same points in consecutive blocks, and sometimes one is left out.
        const points = 1 + below(3);
        for (let block = below(6); block >= 0; block--) {
          if (below(8) > 0) newest++;
          for (let i = below(10) === 0 ? 1 + below(4) : points; i > 0; i--) {
            blocks.add(newest);
            plain.push(newest);
            arrived++;
          }
          newest += below(10) === 0 ? 2 : 1;
        }
      } else {
        const count = below(4) === 0 ? plain.length : below(plain.length + 1);
        const left = plain.slice(count);
        const gone: number[] = [];
        const lasts = new Set<number>();
        blocks.drop(count, (first, many, points, last) => {
          for (let block = first; block < first + many; block++) {
            for (let i = 0; i < points; i++) gone.push(block);
            if (last) lasts.add(block);
          }
        });
        expect(gone, place).toEqual(plain.splice(0, count));
        expect(lasts, place).toEqual(new Set(gone.filter((block) => block !== left[0])));
      }
      const count = below(plain.length + 2);
      expect(blocks.whole(count), place).toBe(wholeOf(plain, count));
      expect([blocks.arrived, blocks.firstPoints], place).toEqual([
        arrived,
        plain.filter((block) => block === plain[0]).length,
      ]);
      if (plain.length > 0) expect(blocks.first, place).toBe(plain[0]);
      const some = new Float64Array(below(plain.length + 1));
      blocks.fill(some);
      expect([...some], place).toEqual(plain.slice(0, some.length));
    }
  }
});

test("an answer for many blocks with one point a series settles each series at once, with one list for all blocks", () => {
  const inputs = Array.from({ length: 20 }, (_, i) => `a${i}` as InputId);
  const window = new Window(50_000);
  for (let id = 0; id < 300; id++) {
    const series = inputs.map((input) => ({ input, times: Float64Array.of(id), values: Float64Array.of(id) }));
    window.add("backlog", Block.of(id as BlockId, series), 0);
  }
  let visits = 0;
  for (const queue of window.filled("backlog")) {
    const drop = queue.drop.bind(queue);
    queue.drop = (count, visit) =>
      drop(count, (...stretch) => {
        visits++;
        visit(...stretch);
      });
    // All but the last series.
    if (queue.input !== inputs.at(-1)) window.settle(queue, queue.count);
  }
  expect(visits).toBeLessThanOrEqual(2 * inputs.length);
  const settled = window.takeSettled();
  expect(settled.map(({ block }) => block).toSorted((a, b) => a - b)).toEqual(Array.from({ length: 300 }, (_, i) => i));
  expect(new Set(settled.map((each) => each.inputs)).size).toBeLessThanOrEqual(2);
  for (const { inputs: of } of settled) expect(of).toEqual(inputs.slice(0, -1));
});
