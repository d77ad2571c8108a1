// Random histories of two collectors, servers that lose messages and settlements, and readers that come and go. In the
// end the service must have the last appended value of each time. A single collector appends for an input, so that
// "last" is defined.
import fc from "fast-check";
import { expect, test } from "vitest";
import type { KeyBucket, KeyEntry } from "../../../../src/cluster/connection/jetstream.ts";
import type { Block } from "../../../../src/core/block.ts";
import { isAgentError } from "../../../../src/core/errors.ts";
import { unreachable } from "../../../support/memory-bucket.ts";
import { runs } from "../../../support/property.ts";
import type { Collector } from "../../../support/stream-place.ts";
import { append, memoryWorld, ServiceStore, worldNode } from "../../../support/stream-world.ts";

const settledKey = "settled.points";
const never = new AbortController().signal;

type Step =
  | { readonly kind: "append"; readonly node: number; readonly input: number; readonly seconds: readonly number[] }
  | { readonly kind: "take"; readonly lane: "live" | "backlog"; readonly most: number; readonly isSettled: boolean }
  | { readonly kind: "restart"; readonly node: number }
  | { readonly kind: "settle" | "release" | "term" | "delete" | "answers" | "hear" }
  | { readonly kind: "lose" | "settlements"; readonly count: number };

const node = fc.nat(1);
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constant("append" as const),
      node,
      input: fc.nat(2),
      seconds: fc.array(fc.nat(5), { minLength: 1, maxLength: 4 }),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant("take" as const),
      lane: fc.constantFrom("live" as const, "backlog" as const),
      most: fc.integer({ min: 1, max: 8 }),
      isSettled: fc.boolean(),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.constantFrom("settle" as const, "release" as const, "term" as const).map((kind) => ({ kind })),
  },
  {
    weight: 2,
    arbitrary: fc.constantFrom("delete" as const, "answers" as const, "hear" as const).map((kind) => ({ kind })),
  },
  { weight: 1, arbitrary: node.map((at) => ({ kind: "restart" as const, node: at })) },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constantFrom("lose" as const, "settlements" as const, "settlements" as const),
      count: fc.integer({ min: 1, max: 4 }),
    }),
  },
);

async function live(steps: readonly Step[]): Promise<void> {
  const { stream, state, reader: open } = memoryWorld();
  let heard: KeyEntry | undefined;
  // What the collectors hear of it may be old: they ask every 10 s, and a former leader may answer.
  const view: KeyBucket = { ...state, get: async (key) => (key === settledKey ? heard : await state.get(key)) };
  using first = worldNode(stream, view, "gw1");
  using second = worldNode(stream, view, "gw2");
  const homes = [first, second];
  const collectors: Collector[] = [await first.start(), await second.start()];
  const service = new ServiceStore();
  const appended = new Map<string, number>();
  const settlements: (Uint8Array | undefined)[] = [];
  let reader = await open();
  let out: Block[] = [];
  let value = 0;
  try {
    for (const each of steps) {
      settlements.push((await state.get(settledKey))?.value);
      if (each.kind === "append") {
        const input = `i${each.node}${each.input}`;
        const points = each.seconds.map((second) => [second, ++value] as const);
        await append(collectors[each.node]!, { [input]: points });
        for (const [second, v] of points) appended.set(`${input}@${second}`, v);
        await collectors[each.node]!.forwarded();
      } else if (each.kind === "take") {
        const block = await reader.take(each.lane, { wait: false, maxPoints: each.most }, never);
        if (block && each.isSettled) {
          // Late points are delivered after those of their input that the uploader already holds.
          if (block.isLate && out.some(({ inputs }) => inputs.some((input) => block.inputs.includes(input))))
            out.push(block);
          else {
            service.take(block);
            await reader.settle([{ block: block.id, inputs: block.inputs }]);
          }
        } else if (block) out.push(block);
      } else if (each.kind === "settle") {
        for (const block of out) service.take(block);
        await reader.settle(out.map(({ id, inputs }) => ({ block: id, inputs })));
        out = [];
      } else if (each.kind === "release") {
        reader.release(out.map(({ id }) => id));
        out = [];
      } else if (each.kind === "term") {
        await reader[Symbol.asyncDispose]();
        reader = await open();
        out = [];
      } else if (each.kind === "hear") heard = await state.get(settledKey);
      else if (each.kind === "delete") stream.delete();
      else if (each.kind === "settlements") {
        await reader[Symbol.asyncDispose]();
        state.expire(settledKey);
        const earlier = settlements.at(-each.count);
        if (earlier) await state.create(settledKey, earlier);
        reader = await open();
        out = [];
      } else if (each.kind === "lose") stream.loseLast(Math.min(each.count, stream.messages.length));
      else if (each.kind === "answers") {
        let lost = 2;
        stream.after = (call) => {
          if (call === "publish" && lost-- > 0) throw unreachable();
        };
      } else if (each.kind === "restart") {
        await collectors[each.node]![Symbol.asyncDispose]();
        collectors[each.node] = await homes[each.node]!.start();
      }
    }
    reader.release(out.map(({ id }) => id));
    heard = await state.get(settledKey);
    // Each collector checks its tail by itself; an append that fails once triggers the check at once.
    for (const [n, collector] of collectors.entries()) {
      let failures = 1;
      stream.before = (call) => {
        if (call === "publish" && failures-- > 0) throw unreachable();
      };
      await append(collector, { [`end${n}`]: [[0, 0]] });
      await collector.forwarded();
      appended.set(`end${n}@0`, 0);
    }
    await service.drain(reader, () => "live");
    expect(Object.fromEntries(service.values)).toEqual(Object.fromEntries(appended));
  } catch (error) {
    if (isAgentError(error)) throw new Error(`${error.code}: ${error.message}`, { cause: error });
    throw error;
  } finally {
    await reader[Symbol.asyncDispose]();
    for (const collector of collectors) await collector[Symbol.asyncDispose]();
  }
}

/** The first value was removed from the stream, and the record of its settlement is lost. */
const replaced: Step[] = [
  { kind: "append", node: 0, input: 0, seconds: [1] },
  { kind: "append", node: 0, input: 0, seconds: [1] },
  { kind: "take", lane: "backlog", most: 1, isSettled: true },
  { kind: "take", lane: "backlog", most: 1, isSettled: false },
  { kind: "settlements", count: 3 },
  { kind: "take", lane: "backlog", most: 1, isSettled: true },
];

test("after any history the service has the last appended value of each time", async () => {
  const steps: fc.Arbitrary<readonly Step[]> = fc.array(step, { minLength: 1, maxLength: 25 });
  const examples: [readonly Step[]][] = [[replaced]];
  await fc.assert(fc.asyncProperty(steps, live), runs(80, { examples }));
});
