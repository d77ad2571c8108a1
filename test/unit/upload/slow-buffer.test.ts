// A log thread on a slow disk answers between two syncs. Reading a backlog takes a few syncs, not one for each block.
import { expect, test } from "vitest";
import { Block, type BlockId } from "../../../src/core/block.ts";
import type { BufferReader, TakeOptions } from "../../../src/core/buffer.ts";
import type { InputId } from "../../../src/core/point.ts";
import { Prefetcher } from "../../../src/upload/window/prefetcher.ts";
import { Window } from "../../../src/upload/window/window.ts";
import { testRuntime } from "../../support/runtime.ts";

const never = new AbortController().signal;
const perBlock = 50_000;
const mostPoints = 1_800_000;

/** Answers takes of the backlog when `sync` is called, in their order, like a thread that is busy until then. */
class SlowReader {
  #waiting: (() => void)[] = [];
  #next = 1;
  /** The take that fails. */
  failing: number | undefined;
  /** Takes answered by a sync. */
  most = Number.POSITIVE_INFINITY;
  readonly leased: number[] = [];

  get waiting(): number {
    return this.#waiting.length;
  }

  sync(): void {
    for (const answer of this.#waiting.splice(0, this.most)) answer();
  }

  async take(lane: "live" | "backlog", { maxPoints }: TakeOptions): Promise<Block | undefined> {
    if (lane === "live") return undefined;
    await new Promise<void>((resolve) => this.#waiting.push(resolve));
    const id = this.#next++;
    if (id === this.failing) throw new Error("the thread has died");
    this.leased.push(id);
    const times = Float64Array.from({ length: Math.min(perBlock, maxPoints) }, (_, i) => id * 1e9 + i);
    return Block.of(id as BlockId, [{ input: "a" as InputId, times, values: times }]);
  }
}

function openStory() {
  const reader = new SlowReader();
  const window = new Window(4_200_000);
  const { clock } = testRuntime();
  const prefetcher = new Prefetcher({
    reader: reader as unknown as BufferReader, // its other methods are not called
    window,
    clock,
    newsMs: 60_000,
    mostPoints: () => mostPoints,
    blockPoints: () => perBlock,
    except: () => undefined,
  });
  return { reader, window, prefetcher };
}

async function syncsUntil(reader: SlowReader, filling: Promise<unknown>): Promise<number> {
  let isDone = false;
  const done = filling.finally(() => (isDone = true));
  done.catch(() => {}); // the test awaits `filling`
  for (let syncs = 0; ; syncs++) {
    for (let turns = 0; turns < 50 && !isDone; turns++) await Promise.resolve();
    if (isDone) return syncs;
    reader.sync();
  }
}

test("a backlog of 36 blocks is leased within ten syncs, in order and within the limit", async () => {
  const { reader, window, prefetcher } = openStory();
  expect(await syncsUntil(reader, prefetcher.fill(never, false))).toBeLessThanOrEqual(10);
  expect(window.points("backlog")).toBeGreaterThan(mostPoints * 0.9);
  expect(window.points("backlog")).toBeLessThanOrEqual(mostPoints);
  expect(window.open()).toEqual(reader.leased);
});

test("where one lease fails, the window holds those that did not, so that they are released or settled", async () => {
  const { reader, window, prefetcher } = openStory();
  reader.failing = 4;
  reader.most = 1;
  const filling = prefetcher.fill(never, false);
  await syncsUntil(reader, filling);
  await expect(filling).rejects.toThrow("the thread has died");
  expect(reader.waiting).toBe(0);
  expect(window.open()).toEqual(reader.leased);
});
