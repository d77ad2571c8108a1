import fc from "fast-check";
import { expect, test } from "vitest";
import {
  decodeFrame,
  encodeFrame,
  type FrameHeader,
  type StreamFrame,
} from "../../../../src/buffer/jetstream/stream-frame.ts";
import { Block, type BlockId, type Series } from "../../../../src/core/block.ts";
import type { InputId } from "../../../../src/core/point.ts";
import { runs } from "../../../support/property.ts";
import { seeded } from "../../../support/runtime.ts";

const header: FrameHeader = {
  node: "gw 1",
  epoch: "e",
  number: 7,
  before: 40,
  dictionary: "d",
  late: false,
  latest: 3,
};
const inputOf = (n: number) => `input-${n}` as InputId;

function seriesOf(frame: StreamFrame, nameOf: (number: number) => InputId): readonly Series[] {
  const inputs = Array.from(frame.numbers, nameOf);
  const late = new Uint8Array(inputs.length).fill(frame.late ? 1 : 0);
  return new Block(0 as BlockId, { ...frame, inputs, late }).series;
}

test("a frame gives back bit by bit what was put into it", () => {
  const value = fc.oneof(fc.double(), fc.integer(), fc.constantFrom(-0, Number.NaN, Infinity, 20.5));
  const column = fc.array(fc.tuple(fc.integer({ min: -(2 ** 49), max: 2 ** 50 }), value), {
    minLength: 1,
    maxLength: 40,
  });
  const some = fc.array(fc.tuple(column, fc.boolean()), { minLength: 1, maxLength: 12 });
  fc.assert(
    fc.property(some, fc.boolean(), (columns, late) => {
      const series: Series[] = columns.map(([points, repeats], i) => {
        const source = repeats && i > 0 ? columns[0]![0] : points;
        const times = Float64Array.from(source, ([time]) => time).sort();
        return { input: inputOf(i), times, values: Float64Array.from(source, ([, v]) => v), late };
      });
      const block = Block.of(1 as BlockId, series);
      // Every other series: a frame may contain a part of a block.
      const chosen = series
        .keys()
        .filter((i) => i % 2 === 0 || series.length < 3)
        .toArray();
      const frame = decodeFrame(
        encodeFrame(
          { ...header, late },
          block,
          chosen,
          chosen.map((i) => i * 3),
        ),
      );
      expect(frame).toMatchObject({ ...header, late });
      expect(seriesOf(frame, (n) => inputOf(n / 3))).toEqual(chosen.map((i) => series[i]));
    }),
    runs(200),
  );
});

/** A plant's tags: random walks with one and two decimals, polled together each second. */
function plant(tags: number, seconds: number): Block {
  const random = seeded(11);
  const times = Float64Array.from({ length: seconds }, (_, s) => 1.7e15 + s * 1e6);
  const values = new Float64Array(tags * seconds);
  for (let tag = 0; tag < tags; tag++) {
    const power = tag % 3 === 0 ? 100 : 10;
    let level = Math.round(random() * 100 * power);
    for (let s = 0; s < seconds; s++) {
      if (random() < 0.5) level += Math.round((random() - 0.5) * 10);
      values[tag * seconds + s] = level / power;
    }
  }
  const starts = Uint32Array.from({ length: tags + 1 }, (_, i) => i * seconds);
  const inputs = Array.from({ length: tags }, (_, i) => inputOf(i));
  const shared = { timeStarts: new Uint32Array(tags), late: new Uint8Array(tags), valueStarts: starts };
  return new Block(1 as BlockId, { inputs, ...shared, times, values });
}

test.each([
  [10_000, 1],
  [2_000, 5],
  [1_000, 60],
])("%i tags with %i points each take at most 2 bytes a point", (tags, seconds) => {
  const block = plant(tags, seconds);
  const all = block.inputs.map((_, i) => i);
  const bytes = encodeFrame(header, block, all, all);

  expect(bytes.length / block.points).toBeLessThan(2);
});
