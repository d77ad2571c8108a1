// Work on the event loop is divided into slices. They are measured in points read, independent of the machine's speed.
import { expect, test } from "vitest";
import { Block, type Series } from "../../../src/core/block.ts";
import type { Lane } from "../../../src/core/buffer.ts";
import type { InputId } from "../../../src/core/point.ts";
import { type Steps, sliceWork, stepWork } from "../../../src/lib/flow/in-slices.ts";
import { FrameWriter, firstRequestId } from "../../../src/upload/packing/frame.ts";
import { Packer } from "../../../src/upload/packing/packer.ts";
import { RowSet } from "../../../src/upload/packing/shared-times.ts";
import { mergeOrder } from "../../../src/upload/series/point-memory.ts";
import { SubBatch } from "../../../src/upload/window/sub-batch.ts";
import { Window } from "../../../src/upload/window/window.ts";
import { extractedColumn, packingEnvelope, windowOf } from "../../support/packing.ts";
import { polled, unrelated } from "../../support/packing-workloads.ts";
import { seeded } from "../../support/runtime.ts";

const full = 8 * 2 ** 20;

/** An array that counts each access to its elements. */
function counted(array: Float64Array, count: { seen: number }): Float64Array {
  return new Proxy(array, {
    get(target, key) {
      if (typeof key === "string" && /^\d+$/.test(key)) count.seen++;
      const value: unknown = Reflect.get(target, key);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
}

/** The size of the largest step, the total, and the result. */
function steps<T>(work: Steps<T>): { largest: number; sum: number; value: T } {
  let largest = 0;
  let sum = 0;
  for (;;) {
    const step = work.next();
    if (step.done === true) return { largest, sum, value: step.value };
    largest = Math.max(largest, step.value);
    sum += step.value;
  }
}

/** One tag with `count` points at the times `at`. */
function deep(count: number, at: (i: number) => number): Series {
  const times = Float64Array.from({ length: count }, (_, i) => 1e15 + at(i) * 1_000);
  return { input: "deep" as InputId, times, values: Float64Array.from(times, (_, i) => i % 10) };
}

const random = seeded(5);
const workloads: readonly (readonly [name: string, series: () => readonly Series[]])[] = [
  ["A, 1,000 tags that share 200 times", () => polled(200)],
  ["B, 1,000 unrelated tags of 300 points", () => unrelated(300)],
  ["one tag of 100,000 points", () => [deep(100_000, (i) => i)]],
  ["one tag of 100,000 points in disorder", () => [deep(100_000, () => Math.floor(random() * 1e9))]],
  ["20,000 unrelated tags", () => unrelated(1, 20_000)],
];

test.for(workloads)(
  "%s: no step of planning or writing is large, and all of them say what there is to do",
  ([, make]) => {
    const series = make();
    const window = windowOf(series);
    const candidates = { queues: window.filled("live"), since: () => 0 };
    const limits = { maxBytes: full, envelopeBytes: packingEnvelope.bytes, maxSeries: 20_000, urgentBefore: -1 };
    const planning = steps(new Packer().plan(candidates, limits));
    const plan = planning.value!;
    const writing = steps(new FrameWriter(packingEnvelope, full).write(plan, firstRequestId));
    expect(Math.max(planning.largest, writing.largest)).toBeLessThanOrEqual(sliceWork + stepWork);
    // Each point of the frame is read to plan it and to write it; each null and each time is written.
    expect(planning.sum).toBeGreaterThanOrEqual(plan.points);
    expect(writing.sum).toBeGreaterThanOrEqual(plan.points + plan.nulls);
  },
);

test("live points that share no time with a frame of the backlog are weighed in steps of that plan", () => {
  const series = unrelated(300);
  const part = (from: number, to: number) =>
    series.map(({ input, times, values }) => ({
      input,
      times: times.subarray(from, to),
      values: values.subarray(from, to),
    }));
  const backlog = windowOf(part(0, 2), "backlog");
  const live = windowOf(part(2, 300));
  const packer = new Packer();
  const plan = () => {
    const candidates = (of: Window, lane: Lane) => ({ queues: of.filled(lane), since: () => 0 });
    const limits = { maxBytes: full, envelopeBytes: packingEnvelope.bytes, maxSeries: 20_000, urgentBefore: -1 };
    return steps(packer.plan(candidates(backlog, "backlog"), limits, candidates(live, "live")));
  };
  const [first, second] = [plan(), plan()];
  expect(Math.max(first.largest, second.largest)).toBeLessThanOrEqual(sliceWork + stepWork);
  // The first plan leaves nothing to yield for the second one.
  expect(second.sum).toBeLessThanOrEqual(first.sum);
});

test("each step of sorting times looks at no more times than its limit", () => {
  const count = { seen: 0 };
  const runs = Array.from({ length: 20 }, (_, run) => Array.from({ length: 2_000 }, (_, i) => i * 20 + run)).flat();
  const work = mergeOrder(counted(Float64Array.from(runs), count), runs.length);
  let before = 0;
  for (let step = work.next(); step.done !== true; step = work.next()) {
    expect(count.seen - before).toBeLessThanOrEqual(2 * stepWork);
    before = count.seen;
  }
  expect(count.seen).toBeGreaterThan(4 * runs.length);
});

test("a set of times grows in steps", () => {
  const rows = new RowSet();
  let time = 1e15;
  let largest = 0;
  for (let size = 0; size < 200_000; size++) {
    largest = Math.max(largest, steps(rows.reserve(size + 1)).largest);
    rows.add(Float64Array.of((time += 1_000)), 0, 1);
  }
  expect(largest).toBeLessThanOrEqual(sliceWork);
  expect(steps(rows.sorted()).value.at(-1)).toBe(time);
});

test("refused points are planned in steps, and a lane is dropped in steps", () => {
  const { times, values, input } = deep(100_000, (i) => (i * 7_919) % 100_000);
  const subBatch = new SubBatch([extractedColumn(input, times, values, new Float64Array(times.length))]);
  const planned = steps(subBatch.plan(packingEnvelope.bytes));
  expect(planned.largest).toBeLessThanOrEqual(sliceWork);
  expect([planned.value.points, planned.value.times.length]).toEqual([100_000, 100_000]);
  const window = new Window(300_000);
  window.add("live", Block.of(1 as never, polled(100)), 0);
  expect(steps(window.forget("live"))).toMatchObject({ largest: 100, sum: 100_000 });
});
