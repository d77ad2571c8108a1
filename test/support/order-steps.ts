// The property "last append wins": sequences that once failed, and random ones.
import fc from "fast-check";
import { expect } from "vitest";
import { OrderModel } from "./order-model.ts";
import { type OrderModelOptions, orderOptions, orderSteps, type Sample, type Step } from "./order-story.ts";
import { runs } from "./property.ts";

const fresh = (index: number, back = 0): Sample => ({ input: index, time: "fresh", back, value: "new" });
const same = (index: number, back: number): Sample => ({ input: index, time: "same", back, value: "new" });
const old = (index: number, back: number): Sample => ({ input: index, time: "old", back, value: "new" });

/** Counterexamples that were found. */
const examples: [OrderModelOptions & { keep: number }, Step[]][] = [
  // An input was parked for its older points while a later half of the same request was sent alone.
  [
    { maxBytes: 3_000, keep: 0 },
    [
      { do: "append", samples: [old(1, 4), same(1, 1), same(1, 1)] },
      { do: "pass", ms: 3 },
      { do: "append", samples: [old(1, 4), fresh(0)] },
      {
        do: "answer",
        answers: [
          { kind: "refuse", named: 2 },
          { kind: "accept" },
          { kind: "accept" },
          { kind: "accept" },
          { kind: "refuse", named: 0 },
          { kind: "partial", refused: 2, unnamed: 0 },
          { kind: "partial", refused: 0, unnamed: 0 },
        ],
      },
      { do: "pass", ms: 12_000 },
      { do: "append", samples: [fresh(0)] },
    ],
  ],
  // A late record overtook one that waited for an unreadable segment, although both had a point with the same time.
  [
    { maxBytes: 3_000, keep: 0 },
    [
      { do: "append", samples: [{ input: 0, time: "same", back: 0, value: "new" }] },
      { do: "stop" },
      { do: "answer", answers: [{ kind: "partial", refused: 1, unnamed: 0 }] },
      {
        do: "append",
        samples: [
          { input: 0, time: "fresh", back: 0, value: "last" },
          { input: 0, time: "same", back: 2, value: "poison" },
        ],
      },
      { do: "pass", ms: 1100 },
      {
        do: "append",
        samples: [
          { input: 0, time: "same", back: 2, value: "new" },
          { input: 2, time: "fresh", back: 3, value: "new" },
          { input: 2, time: "fresh", back: 2, value: "new" },
        ],
      },
      { do: "pass", ms: 3 },
      { do: "append", samples: [{ input: 2, time: "same", back: 1, value: "new" }] },
      { do: "unread", which: "oldest" },
      { do: "reload" },
      { do: "pass", ms: 1100 },
    ],
  ],
  // No further point was appended, and a segment that had been unreadable for a moment was not read again.
  [
    { maxBytes: 3_000, keep: 0 },
    [
      { do: "append", samples: [same(0, 0)] },
      { do: "pass", ms: 3 },
      { do: "kill", again: 0 },
      { do: "append", samples: [fresh(0)] },
      { do: "stop" },
      { do: "append", samples: [same(0, 0)] },
      { do: "unread", which: "oldest" },
      { do: "pass", ms: 3 },
    ],
  ],
  // The same after a kill and with another uploader; the seed was 1340135865.
  [
    { maxBytes: 3_000, keep: 0 },
    [
      { do: "append", samples: [fresh(0)] },
      { do: "stop" },
      { do: "kill", again: 1 },
      { do: "reload" },
      { do: "unread", which: "oldest" },
      { do: "pass", ms: 3 },
    ],
  ],
  // Points that a block had omitted were settled, and then the block. The first settlement was lost, and the points
  // came again after the kill.
  [
    { maxBytes: 100_000, keep: 0 },
    [
      { do: "append", samples: [same(2, 3), fresh(0, 3)] },
      { do: "pass", ms: 12_000 },
      {
        do: "answer",
        answers: [{ kind: "refuse", named: 1 }, { kind: "throttled" }, { kind: "partial", refused: 7, unnamed: 0 }],
      },
      { do: "append", samples: [fresh(1), same(2, 0), fresh(1)] },
      { do: "append", samples: [same(0, 2), old(2, 2)] },
      { do: "pass", ms: 150 },
      { do: "kill", again: 3 },
      { do: "append", samples: [{ input: 2, time: "fresh", back: 3, value: "poison" }] },
      { do: "pass", ms: 12_000 },
      { do: "kill", again: 1 },
      { do: "append", samples: [fresh(2), fresh(2, 4)] },
    ],
  ],
  // Points of a parked input waited for their block, whose remaining points were always answered with 500.
  [
    { maxBytes: 3_000, keep: 0 },
    [
      { do: "hold", input: 0, isHeld: true },
      { do: "pass", ms: 1_100 },
      {
        do: "append",
        samples: [
          same(1, 1),
          { input: 1, time: "same", back: 3, value: "poison" },
          old(2, 0),
          { input: 0, time: "fresh", back: 2, value: "last" },
          fresh(0, 4),
          same(0, 4),
          same(1, 0),
        ],
      },
      { do: "pass", ms: 153 },
      { do: "pass", ms: 60_000 },
      {
        do: "answer",
        answers: [
          { kind: "partial", refused: 3, unnamed: 0 },
          { kind: "unavailable", stored: false },
          { kind: "accept" },
        ],
      },
      { do: "pass", ms: 150 },
      {
        do: "append",
        samples: [
          { input: 2, time: "fresh", back: 1, value: "poison" },
          { input: 2, time: "fresh", back: 3, value: "last" },
          same(0, 4),
          { input: 2, time: "fresh", back: 1, value: "failing" },
          old(1, 3),
          old(1, 3),
          same(0, 4),
        ],
      },
      { do: "pass", ms: 1_100 },
    ],
  ],
  // The same with a backlog of two points, which is sent before fresh points.
  [
    { maxBytes: 3_000, keep: 0 },
    [
      { do: "hold", input: 2, isHeld: true },
      { do: "answer", answers: [{ kind: "partial", refused: 1, unnamed: 0 }] },
      { do: "append", samples: [{ input: 2, time: "fresh", back: 0, value: "failing" }, same(0, 0)] },
      { do: "hold", input: 0, isHeld: false },
      { do: "append", samples: [same(0, 0)] },
      { do: "pass", ms: 3 },
      { do: "pass", ms: 3_000 },
    ],
  ],
];

/** Runs `count` random sequences, and the known counterexamples. */
export async function expectLastAppends(count: number): Promise<void> {
  const property = fc.asyncProperty(orderOptions, orderSteps, async (options, steps) => {
    const model = await OrderModel.run(options, steps);
    expect(model.differences()).toEqual([]);
  });
  await fc.assert(property, runs(count, { examples }));
}
