// The contract of every `PointBuffer` and every reader, whatever stores the points. A test file of each implementation
// runs it.
import { expect, test } from "vitest";
import type { Block } from "../../src/core/block.ts";
import type { BufferReader, BufferStats, PointBuffer } from "../../src/core/buffer.ts";
import { epochMicros, type InputId, type Point } from "../../src/core/point.ts";

/** A place where one buffer lives, across restarts. */
export interface BufferPlace extends AsyncDisposable {
  open(integration?: string): Promise<PointBuffer>;
}

/** The part of a buffer that the tests of a reader need: a way to append points. */
type ReadBuffer = Pick<PointBuffer, "append" | "reader"> & Partial<Pick<PointBuffer, "stats">> & AsyncDisposable;

/** A place where points live across restarts of their reader. */
export interface ReadPlace extends AsyncDisposable {
  open(): Promise<ReadBuffer>;
}

const never = new AbortController().signal;
const t0 = Date.parse("2026-01-01T00:00:00Z") * 1_000;
const all = { wait: false, maxPoints: 1e6 } as const;

const point = (input: string, second: number, value = second): Point => ({
  // written in these tests, hence valid
  input: input as InputId,
  time: epochMicros(t0 + second * 1e6),
  value,
});
const points = (...seconds: number[]) => seconds.flatMap((second) => [point("a", second), point("b", second)]);
const seconds = (block: Block | undefined, input = "a") =>
  [...(block?.series.find((series) => series.input === input)?.times ?? [])].map((time) => (time - t0) / 1e6);
/** Takes everything. A block may hold fewer points than requested. */
async function drain(reader: BufferReader): Promise<Block[]> {
  const blocks: Block[] = [];
  for (let block = await reader.take("backlog", all, never); block; block = await reader.take("backlog", all, never))
    blocks.push(block);
  return blocks;
}
const inputsOf = (block: Block) => block.series.map((series) => series.input);

/** Checks counters of buffers that have them. */
function expectStats(buffer: ReadBuffer, expected: Partial<BufferStats>): void {
  if (buffer.stats) expect(buffer.stats()).toMatchObject(expected);
}

export function bufferContract(place: () => BufferPlace): void {
  readerContract(place);

  test("a backlog of another integration is not delivered, and new points are still stored", async () => {
    await using home = place();
    {
      await using buffer = await home.open("first");
      await buffer.append(points(1), { awaited: true }, never);
    }
    {
      await using buffer = await home.open("second");
      await expect(buffer.reader()).rejects.toMatchObject({ code: "BUFFER_FOREIGN" });
      await buffer.append(points(2), { awaited: true }, never);
    }

    await using buffer = await home.open("first");
    await using reader = await buffer.reader();

    expect(buffer.stats().unsettledPoints).toBe(4);
    expect(await reader.take("backlog", all, never)).toBeDefined();
  });

  test("only one process can open the buffer", async () => {
    await using home = place();
    await using buffer = await home.open();

    await expect(home.open()).rejects.toMatchObject({ code: "DATA_DIR_IN_USE" });
    await buffer.append(points(1), { awaited: true }, never);
  });
}

export function readerContract(place: () => ReadPlace): void {
  test("a block lists its points by series, in columns, in ascending order of time", async () => {
    await using home = place();
    await using buffer = await home.open();
    await using reader = await buffer.reader();

    await buffer.append([point("b", 2, -0), point("a", 3, 0.1), point("a", 1, 1e300)], { awaited: true }, never);
    const block = await reader.take("backlog", all, never);

    expect(block?.series.map(({ input, times, values }) => [input, [...times], [...values]]).toSorted()).toEqual([
      ["a", [t0 + 1e6, t0 + 3e6], [1e300, 0.1]],
      ["b", [t0 + 2e6], [-0]],
    ]);
  });

  test("a block that was leased but not settled is delivered again after a restart", async () => {
    await using home = place();
    {
      await using buffer = await home.open();
      await buffer.append(points(1, 2, 3), { awaited: true }, never);
      await using reader = await buffer.reader();
      await reader.take("backlog", all, never);
    }

    await using buffer = await home.open();
    await using reader = await buffer.reader();

    expect(seconds(await reader.take("backlog", all, never))).toEqual([1, 2, 3]);
  });

  test("settled points are not delivered again, unsettled ones are", async () => {
    await using home = place();
    {
      await using buffer = await home.open();
      await using reader = await buffer.reader();
      await buffer.append(points(1, 2), { awaited: true }, never);
      const block = (await reader.take("backlog", all, never))!;
      await reader.settle([{ block: block.id, inputs: ["a" as InputId], refused: 1 }]);
      expectStats(buffer, { settledPoints: 1, refusedPoints: 1, unsettledPoints: 2 });
    }

    await using buffer = await home.open();
    await using reader = await buffer.reader();
    const block = (await reader.take("backlog", all, never))!;

    expect(inputsOf(block)).toEqual(["b"]);
    expect(seconds(block, "b")).toEqual([1, 2]);
    expectStats(buffer, { appendedPoints: 4, settledPoints: 1, refusedPoints: 1, unsettledPoints: 2 });
  });

  test("settling a block twice, or an unknown block, changes nothing", async () => {
    await using home = place();
    await using buffer = await home.open();
    await using reader = await buffer.reader();
    await buffer.append(points(1), { awaited: true }, never);
    const block = (await reader.take("live", all, never))!;
    const done = [{ block: block.id, inputs: inputsOf(block) }];

    await reader.settle(done);
    await reader.settle(done);
    await reader.settle([{ ...done[0]!, block: (block.id + 1_000) as typeof block.id }]);

    expectStats(buffer, { settledPoints: 2, unsettledPoints: 0, oldest: undefined });
  });

  test("a released block can be leased again by either lane, by one lane at a time", async () => {
    await using home = place();
    await using buffer = await home.open();
    await using reader = await buffer.reader();
    await buffer.append(points(1, 2), { awaited: true }, never);

    const block = (await reader.take("live", all, never))!;
    expect(await reader.take("backlog", all, never)).toBeUndefined();
    reader.release([block.id]);

    expect(seconds(await reader.take("backlog", all, never))).toEqual([1, 2]);
    expect(await reader.take("live", all, never)).toBeUndefined();
  });

  test("the backlog begins with the oldest points and can be limited to some inputs", async () => {
    await using home = place();
    await using buffer = await home.open();
    await using reader = await buffer.reader();
    for (let i = 1; i <= 4; i++) await buffer.append(points(i), { awaited: true }, never);

    const some = (await reader.take("backlog", { ...all, inputs: ["b" as InputId] }, never))!;
    const oldest = (await reader.take("backlog", { wait: false, maxPoints: 2 }, never))!;

    expect(inputsOf(some)).toEqual(["b"]);
    expect(seconds(some, "b")).toEqual([1, 2, 3, 4]);
    expect(inputsOf(oldest)).toEqual(["a"]);
    expect(seconds(oldest)).toEqual([1, 2]);
  });

  test("series left out of a block can be leased later, also after a restart, and a block ends at its limit of points", async () => {
    await using home = place();
    {
      await using buffer = await home.open();
      await using reader = await buffer.reader();
      for (let i = 1; i <= 4; i++) await buffer.append(points(i), { awaited: true }, never);
      const except = ["b" as InputId];
      const oldest = (await reader.take("backlog", { ...all, enough: 2, except }, never))!;
      const rest = (await reader.take("live", { ...all, except }, never))!;
      expect([inputsOf(oldest), seconds(oldest)]).toEqual([["a"], [1, 2]]);
      expect([inputsOf(rest), seconds(rest)]).toEqual([["a"], [3, 4]]);
      expect(await reader.take("live", { ...all, except }, never)).toBeUndefined();
      await reader.settle([oldest, rest].map((block) => ({ block: block.id, inputs: inputsOf(block) })));
      expectStats(buffer, { settledPoints: 4, unsettledPoints: 4 });
    }

    await using buffer = await home.open();
    await using reader = await buffer.reader();
    const some = (await reader.take("backlog", { ...all, enough: 2 }, never))!;
    reader.release([some.id]);
    const held = (await reader.take("live", all, never))!;

    expect([inputsOf(held), seconds(held, "b")]).toEqual([["b"], [1, 2, 3, 4]]);
    expectStats(buffer, { settledPoints: 4, unsettledPoints: 4 });
  });

  test("waiting for a block ends with the block, or with the reason of the abort signal", async () => {
    await using home = place();
    await using buffer = await home.open();
    await using reader = await buffer.reader();
    const patience = new AbortController();
    const inVain = reader.take("backlog", { wait: true, maxPoints: 10, inputs: ["c" as InputId] }, patience.signal);
    const waiting = reader.take("live", { wait: true, maxPoints: 10 }, never);

    await buffer.append(points(1), { awaited: true }, never);
    expect(seconds(await waiting)).toEqual([1]);

    const reason = new Error("enough");
    patience.abort(reason);
    await expect(inVain).rejects.toBe(reason);
    await expect(buffer.append(points(2), { awaited: true }, patience.signal)).rejects.toBe(reason);
  });

  test("overlapping appends are all stored", async () => {
    await using home = place();
    await using buffer = await home.open();
    await using reader = await buffer.reader();

    await Promise.all(Array.from({ length: 50 }, (_, i) => buffer.append(points(i), { awaited: i % 2 === 0 }, never)));

    const taken = (await drain(reader)).flatMap((block) => seconds(block));
    expect(taken.toSorted((a, b) => a - b)).toEqual(Array.from({ length: 50 }, (_, i) => i));
  });

  test("overlapping takes of the backlog lease the oldest points in the order of the calls", async () => {
    await using home = place();
    await using buffer = await home.open();
    await using reader = await buffer.reader();
    for (let i = 0; i < 3; i++) await buffer.append([point("a", i, i)], { awaited: true }, never);

    const taken: number[][] = [];
    const takes = [1, 2, 3].map(() => reader.take("backlog", { wait: false, maxPoints: 1 }, never));
    await Promise.all(takes.map(async (take) => taken.push(seconds(await take))));

    expect(taken).toEqual([[0], [1], [2]]);
  });

  test("values with the same time are delivered in the order of their appends, and a repeat of the newest one is stored once", async () => {
    await using home = place();
    await using buffer = await home.open();
    await using reader = await buffer.reader();
    for (const value of [1, 0, 0, 1]) await buffer.append([point("a", 1, value)], { awaited: true }, never);

    const live = await reader.take("live", all, never);
    const late = await reader.take("live", { ...all, wait: true }, never);

    const valuesOf = (block: Block | undefined) =>
      block?.series.map(({ late, values }) => [late === true, [...values]]);
    expect(valuesOf(live)).toEqual([[false, [1]]]);
    expect(valuesOf(late)).toEqual([[true, [0, 1]]]);
    expectStats(buffer, { duplicatePoints: 1, collidedPoints: 2, appendedPoints: 3 });
  });

  test("waiting in the live lane ends when only late points are stored", async () => {
    await using home = place();
    await using buffer = await home.open();
    await using reader = await buffer.reader();
    await buffer.append([point("a", 2, 1)], { awaited: true }, never);
    const first = (await reader.take("live", all, never))!;
    const waiting = reader.take("live", { wait: true, maxPoints: 10 }, never);

    await buffer.append([point("a", 1, 2)], { awaited: true }, never);

    expect(seconds(await waiting)).toEqual([1]);
    reader.release([first.id]);
  });

  test("a late point is settled no earlier than the point that it may replace, and is released with it", async () => {
    await using home = place();
    await using buffer = await home.open();
    await using reader = await buffer.reader();
    await buffer.append([point("a", 1, 1), point("b", 1, 1)], { awaited: true }, never);
    const first = (await reader.take("live", all, never))!;
    await buffer.append([point("a", 1, 2)], { awaited: true }, never);
    const late = (await reader.take("backlog", all, never))!;

    await reader.settle([{ block: late.id, inputs: ["a" as InputId] }]);
    expectStats(buffer, { settledPoints: 0, unsettledPoints: 3 });
    reader.release([first.id]);

    const again = await drain(reader);
    const values = again.flatMap(({ series }) =>
      series.flatMap(({ input, values: of }) => [...of].map((v) => [input, v])),
    );
    expect(values.filter(([input]) => input === "a")).toEqual([
      ["a", 1],
      ["a", 2],
    ]);
    expectStats(buffer, { settledPoints: 0, unsettledPoints: 3 });
  });

  test("a late point is settled together with the last point that it may replace", async () => {
    await using home = place();
    await using buffer = await home.open();
    await using reader = await buffer.reader();
    await buffer.append([point("a", 1, 1)], { awaited: true }, never);
    const first = (await reader.take("live", all, never))!;
    await buffer.append([point("a", 1, 2)], { awaited: true }, never);
    const late = (await reader.take("backlog", all, never))!;

    await reader.settle([{ block: late.id, inputs: ["a" as InputId] }]);
    await reader.settle([{ block: first.id, inputs: ["a" as InputId] }]);

    expectStats(buffer, { settledPoints: 2, unsettledPoints: 0 });
  });
}
