// The events in the tests of "last append wins", and random sequences of them.
import fc from "fast-check";
import type { Answer } from "./scripted-sink.ts";

/** One point of an append. */
export interface Sample {
  /** Index of the input. */
  readonly input: number;
  /** `fresh`: at this second. `same`: at the time of an earlier point of the input. `old`: long ago. */
  readonly time: "fresh" | "same" | "old";
  /** Which earlier point, or how many seconds ago. */
  readonly back: number;
  /** `poison`: permanently refused. `failing`: the service answers 500 to each request that contains it. */
  readonly value: "new" | "last" | "poison" | "failing";
}

export type Step =
  | { readonly do: "append"; readonly samples: readonly Sample[] }
  | { readonly do: "pass"; readonly ms: number }
  | { readonly do: "answer"; readonly answers: readonly Answer[] }
  | { readonly do: "outage"; readonly isUnmounted: boolean | "answering" }
  /** SIGKILL. Unacknowledged messages are delivered again, and at least the last `again` ones. */
  | { readonly do: "kill"; readonly again: number }
  /** The same, and each unsynced write may be lost. */
  | { readonly do: "powerCut"; readonly again: number; readonly seed: number }
  | { readonly do: "reload" }
  | { readonly do: "stop" }
  /** The points of an input wait for its metadata. */
  | { readonly do: "hold"; readonly input: number; readonly isHeld: boolean }
  /** Refused points cannot be written to disk. */
  | { readonly do: "fill"; readonly isFull: boolean }
  /** The oldest segment cannot be read, unless it is the only one. */
  | { readonly do: "unread"; readonly which: "none" | "oldest" }
  /** Larger requests are answered with 413. */
  | { readonly do: "limit"; readonly bytes: number }
  /** −32021 names the inputs of this mask. */
  | { readonly do: "forbid"; readonly inputs: number };

export interface OrderModelOptions {
  /** The largest request in bytes. */
  readonly maxBytes: number;
  /** The mask of the inputs with `sameTime: keep`; default 0. */
  readonly keep?: number;
}

const input = fc.integer({ min: 0, max: 2 });
const mask = fc.integer({ min: 0, max: 7 });

const sample: fc.Arbitrary<Sample> = fc.record({
  input,
  time: fc.oneof(
    { weight: 4, arbitrary: fc.constant("fresh" as const) },
    { weight: 4, arbitrary: fc.constant("same" as const) },
    { weight: 1, arbitrary: fc.constant("old" as const) },
  ),
  back: fc.nat(4),
  value: fc.oneof(
    { weight: 16, arbitrary: fc.constant("new" as const) },
    { weight: 2, arbitrary: fc.constant("last" as const) },
    { weight: 1, arbitrary: fc.constant("poison" as const) },
    { weight: 1, arbitrary: fc.constant("failing" as const) },
  ),
});

const answer: fc.Arbitrary<Answer> = fc.oneof(
  fc.record({ kind: fc.constant("accept" as const) }),
  fc.record({ kind: fc.constant("refuse" as const), named: mask }),
  fc.record({ kind: fc.constant("partial" as const), refused: mask, unnamed: mask }),
  fc.record({ kind: fc.constant("unavailable" as const), stored: fc.boolean() }),
  fc.record({ kind: fc.constant("throttled" as const) }),
  fc.record({ kind: fc.constant("tooLarge" as const) }),
  fc.record({ kind: fc.constant("unauthorized" as const) }),
  fc.constantFrom(
    { kind: "partial" as const, refused: 7, unnamed: 0 },
    { kind: "partial" as const, refused: 0, unnamed: 7 },
  ),
);

const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 10,
    arbitrary: fc.record({
      do: fc.constant("append" as const),
      samples: fc.array(sample, { minLength: 1, maxLength: 8 }),
    }),
  },
  {
    weight: 8,
    arbitrary: fc.record({
      do: fc.constant("pass" as const),
      ms: fc.constantFrom(3, 150, 500, 1_100, 3_000, 12_000, 60_000),
    }),
  },
  {
    weight: 6,
    arbitrary: fc.record({
      do: fc.constant("answer" as const),
      answers: fc.array(answer, { minLength: 1, maxLength: 4 }),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant("outage" as const),
      isUnmounted: fc.constantFrom(true, false, "answering" as const),
    }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("kill" as const), again: fc.nat(6) }) },
  {
    weight: 1,
    arbitrary: fc.record({ do: fc.constant("powerCut" as const), again: fc.nat(6), seed: fc.nat(1_000) }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("reload" as const) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("stop" as const) }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("hold" as const), input, isHeld: fc.boolean() }) },
  {
    weight: 1,
    arbitrary: fc.record({ do: fc.constant("limit" as const), bytes: fc.constantFrom(100, 500, 2_000, 1_000_000) }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("forbid" as const), inputs: mask }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("fill" as const), isFull: fc.boolean() }) },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constant("unread" as const),
      which: fc.constantFrom("none" as const, "oldest" as const),
    }),
  },
);

export const orderSteps = fc.array(step, { minLength: 5, maxLength: 60 });
export const orderOptions = fc.record({
  maxBytes: fc.constantFrom(3_000, 100_000),
  // Most sequences are about values that replace each other.
  keep: fc.oneof({ weight: 2, arbitrary: fc.constant(0) }, { weight: 1, arbitrary: mask }),
});
