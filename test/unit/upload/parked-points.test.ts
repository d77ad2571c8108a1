// Points of parked inputs during other refusals, in simulated time: none is lost, and none delays the others.
import { expect, test } from "vitest";
import { OrderModel } from "../../support/order-model.ts";
import type { Sample, Step } from "../../support/order-story.ts";
import type { Answer } from "../../support/scripted-sink.ts";

const old = (input: number, back: number): Sample => ({ input, time: "old", back, value: "new" });
const same = (input: number, back: number): Sample => ({ input, time: "same", back, value: "new" });
const refuse: Answer = { kind: "refuse", named: 0 };
const partial: Answer = { kind: "partial", refused: 7, unnamed: 0 };
const times = <T>(count: number, each: T): T[] => Array.from({ length: count }, () => each);
const pass: Step = { do: "pass", ms: 3_600_000 };

test("points left out of a retry all reach the service after the retry is refused", async () => {
  const model = await OrderModel.run({ maxBytes: 100_000 }, [
    { do: "answer", answers: [...times(3, partial), refuse] },
    { do: "append", samples: Array.from({ length: 40 }, (_, back) => old(0, 40 - back)) },
    pass,
  ]);
  expect(model.differences()).toEqual([]);
});

test("a value delayed by a retry does not overwrite later ones of its time", async () => {
  const model = await OrderModel.run({ maxBytes: 100_000 }, [
    { do: "answer", answers: [...times(3, partial), refuse] },
    { do: "append", samples: [old(0, 1), old(0, 0), ...times(6, same(0, 0))] },
    pass,
  ]);
  expect(model.differences()).toEqual([]);
});

test("a retry refused for its points does not delay all others for ever", async () => {
  const model = await OrderModel.run({ maxBytes: 100_000 }, [
    { do: "answer", answers: [...times(27, refuse), partial] },
    { do: "append", samples: Array.from({ length: 20 }, (_, back) => old(1, 20 - back)) },
    { do: "pass", ms: 220_000 },
    { do: "append", samples: [{ input: 1, time: "fresh", back: 0, value: "poison" }] },
    pass,
    { do: "append", samples: [old(0, 3)] },
  ]);
  expect(model.differences()).toEqual([]);
});
