// Readers in succession: settlements of an earlier reader are ignored, and settled points are not delivered again.
import { expect, test } from "vitest";
import { Forwarder } from "../../../../src/buffer/jetstream/forwarder.ts";
import { decodeFrameHeader } from "../../../../src/buffer/jetstream/stream-frame.ts";
import { Block, type BlockId } from "../../../../src/core/block.ts";
import type { BufferReader } from "../../../../src/core/buffer.ts";
import type { InputId } from "../../../../src/core/point.ts";
import { orAbort } from "../../../../src/lib/flow/abort.ts";
import { eventually } from "../../../support/eventually.ts";
import { unreachable } from "../../../support/memory-bucket.ts";
import { hastyRuntime } from "../../../support/stream-place.ts";
import { append, memoryWorld, ServiceStore } from "../../../support/stream-world.ts";
import { temporaryFolder } from "../../../support/temporary-folder.ts";

const never = new AbortController().signal;
const all = { wait: false, maxPoints: 1e6 } as const;

test("a reader of an earlier term cannot settle any more", async () => {
  const { node, reader: open } = memoryWorld();
  using gateway = node("gw1");
  await using collector = await gateway.start();
  await append(collector, { a: [[1, 1]] });
  await collector.forwarded();
  await using suspended = await open();
  const block = (await suspended.take("backlog", all, never))!;
  await using holder = await open();

  const settling = suspended.settle([{ block: block.id, inputs: block.inputs }]);
  await expect(settling).rejects.toMatchObject({ code: "CLUSTER_FENCED" });
  const again = await holder.take("backlog", all, never);
  expect(again?.points).toBe(1);
});

test("a settlement whose answer is lost is the reader's own", async () => {
  const { state, node, reader: open } = memoryWorld();
  using gateway = node("gw1");
  await using collector = await gateway.start();
  await append(collector, { a: [[1, 1]] });
  await collector.forwarded();
  await using reader = await open();
  const block = (await reader.take("backlog", all, never))!;
  let failures = 0;
  state.after = (call) => {
    if (call === "update" && failures++ === 0) throw unreachable();
  };
  await reader.settle([{ block: block.id, inputs: block.inputs }]);

  await using next = await open();
  expect(await next.take("backlog", all, never)).toBeUndefined();
  expect(failures).toBeGreaterThan(1);
});

test("a new term goes on within a frame: series that are settled do not come again", async () => {
  const { node, reader: open } = memoryWorld();
  using gateway = node("gw1");
  await using collector = await gateway.start();
  await append(collector, { a: [[1, 1]], b: [[1, 2]], c: [[1, 3]] });
  await collector.forwarded();
  {
    await using reader = await open();
    const block = (await reader.take("live", all, never))!;
    await reader.settle([{ block: block.id, inputs: ["b" as InputId] }]);
  }

  await using reader = await open();
  const rest = await reader.take("backlog", all, never);
  expect(rest?.inputs.toSorted()).toEqual(["a", "c"]);
});

test("what is settled does not come again when another server leads the stream", async () => {
  const { stream, node, reader: open } = memoryWorld();
  using gateway = node("gw1");
  await using collector = await gateway.start();
  for (let i = 1; i <= 3; i++) {
    await append(collector, { a: [[i, i]] });
    await collector.forwarded();
  }
  await using reader = await open();
  // The reader leases the message, so that it stays in the stream.
  await reader.take("backlog", { wait: false, maxPoints: 1 }, never);
  const service = new ServiceStore();
  await service.drain(reader);
  stream.loseLast(0);
  await service.drain(reader);

  expect(service.deliveries).toBe(2);
});

test.each([
  { what: "the same reader", reopens: false, isFollowed: true },
  { what: "the same reader, with nothing behind them", reopens: false, isFollowed: false },
  { what: "the next reader", reopens: true, isFollowed: true },
  { what: "the next reader, with nothing behind them", reopens: true, isFollowed: false },
])(
  "settled messages that the servers remove after a change of their leader do not count as lost: $what",
  async ({ reopens, isFollowed }) => {
    const { stream, node, reader: open, lostMessages } = memoryWorld();
    using gateway = node("gw1");
    await using collector = await gateway.start();
    const service = new ServiceStore();
    const settled = 3;
    for (let i = 1; i <= settled; i++) {
      await append(collector, { a: [[i, i]] });
      await collector.forwarded();
    }
    // The request is under way when the leader changes.
    stream.before = (call) => {
      if (call === "purgeBefore") throw unreachable();
    };
    await using former = await open();
    await service.drain(former);
    if (isFollowed) {
      await append(collector, { a: [[9, 9]] });
      await collector.forwarded();
    }
    stream.loseLast(0);
    let removals = 0;
    stream.before = (call) => {
      if (call === "next" && removals++ === 0) stream.dropFirst(settled);
    };
    await using next = reopens ? await open() : undefined;
    const reader = next ?? former;
    await service.drain(reader);
    await service.drain(reader);

    expect(removals).toBeGreaterThan(0);
    expect(lostMessages()).toBe(0);
    expect(service.deliveries).toBe(isFollowed ? settled + 1 : settled);
  },
);

test("messages that were lost behind the settled ones count as lost although the leader has changed", async () => {
  const { stream, node, reader: open, lostMessages } = memoryWorld();
  using gateway = node("gw1");
  await using collector = await gateway.start();
  const service = new ServiceStore();
  await append(collector, { a: [[1, 1]] });
  await collector.forwarded();
  await using reader = await open();
  await service.drain(reader);
  for (let i = 2; i <= 4; i++) {
    await append(collector, { a: [[i, i]] });
    await collector.forwarded();
  }
  stream.loseLast(0);
  let removals = 0;
  stream.before = (call) => {
    if (call === "next" && removals++ === 0) stream.dropFirst(stream.messages.length - 1);
  };
  await service.drain(reader);

  await eventually(() => lostMessages() === 2);
});

test.each([
  { what: "until the next one is heard of", answers: 2 },
  { what: "also when the reader asks again", answers: 3 },
])(
  "settled messages do not count as lost when a former leader answers with its old state: $what",
  async ({ answers }) => {
    const { stream, node, reader: open, lostMessages } = memoryWorld();
    using gateway = node("gw1");
    await using collector = await gateway.start();
    const service = new ServiceStore();
    for (let i = 1; i <= 3; i++) {
      await append(collector, { a: [[i, i]] });
      await collector.forwarded();
    }
    const old = await stream.state();
    stream.loseLast(0);
    await using former = await open();
    await eventually(async () => {
      await service.drain(former);
      return stream.messages.length === 0;
    });
    for (let i = 4; i <= 5; i++) {
      await append(collector, { a: [[i, i]] });
      await collector.forwarded();
      // The record of what is settled forgets the positions that were removed.
      if (i === 4) await service.drain(former);
    }
    let asked = 0;
    await using next = await open({ ...stream, state: async () => (asked++ < answers ? old : await stream.state()) });
    for (let i = 0; i < 3; i++) await service.drain(next);

    expect(lostMessages()).toBe(0);
    expect(service.deliveries).toBe(5);
  },
);

test("messages that the next reader has removed do not count as lost by a suspended one that resumes", async () => {
  const { stream, node, reader: open, lostMessages } = memoryWorld();
  using gateway = node("gw1");
  await using collector = await gateway.start();
  const service = new ServiceStore();
  await append(collector, { a: [[1, 1]] });
  await collector.forwarded();
  await using suspended = await open();
  await eventually(async () => {
    await service.drain(suspended);
    return stream.messages.length === 0;
  });
  for (let i = 2; i <= 3; i++) {
    await append(collector, { a: [[i, i]] });
    await collector.forwarded();
  }
  await using next = await open();
  await eventually(async () => {
    await service.drain(next);
    return stream.messages.length === 0;
  });
  await append(collector, { a: [[4, 4]] });
  await collector.forwarded();
  const block = await suspended.take("backlog", all, never);

  const settling = suspended.settle(block ? [{ block: block.id, inputs: block.inputs }] : []);
  await expect(settling).rejects.toMatchObject({ code: "CLUSTER_FENCED" });
  expect(lostMessages()).toBe(0);
});

test("a message that was deleted behind a waiting one counts as lost, and later ones are delivered", async () => {
  const { stream, node, reader: open, lostMessages } = memoryWorld();
  using gateway = node("gw1");
  await using collector = await gateway.start();
  const service = new ServiceStore();
  for (let i = 1; i <= 3; i++) {
    await append(collector, { a: [[i, i]] });
    await collector.forwarded();
  }
  stream.deleteMessage(2);
  await using reader = await open();
  await service.drain(reader);

  await eventually(() => lostMessages() === 1);
  expect(service.deliveries).toBe(2);
});

test("fresh points of any collector go first while a backlog drains", async () => {
  const { node, reader: open } = memoryWorld();
  using first = node("gw1");
  using second = node("gw2");
  await using one = await first.start();
  await using other = await second.start();
  for (let i = 0; i < 20; i++) {
    await append(one, { a: [[i, i]] });
    await one.forwarded();
  }
  await using reader = await open();
  await reader.take("backlog", { wait: false, maxPoints: 5 }, never);
  await append(other, { b: [[100, 1]] });
  await other.forwarded();

  const fresh = await reader.take("live", { wait: false, maxPoints: 1 }, never);
  expect(fresh?.inputs).toEqual(["b"]);
});

test("a value appended after a restart replaces one that is still on the stream", async () => {
  const { node, reader: open } = memoryWorld();
  using gateway = node("gw1");
  {
    await using collector = await gateway.start();
    await append(collector, { a: [[10, 1]] });
    await collector.forwarded();
  }
  await using collector = await gateway.start();
  await append(collector, {
    a: [
      [10, 2],
      [11, 3],
    ],
  });
  await collector.forwarded();
  const service = new ServiceStore();
  await using reader = await open();
  await service.drain(reader, () => "live", 1);

  expect(Object.fromEntries(service.values)).toEqual({ "a@10": 2, "a@11": 3 });
});

test("points of the collector that took a source over come behind those of the one before", async () => {
  const { stream, node, reader: open } = memoryWorld();
  using first = node("gw1");
  using second = node("gw2");
  await using one = await first.start();
  await append(one, { a: [[10, 1]] });
  await one.forwarded();
  await using other = await second.start();
  other.forwarder.sourceMoved();
  await append(other, { a: [[10, 2]] });
  await other.forwarded();
  expect(stream.messages).toHaveLength(2);
  const service = new ServiceStore();
  await using reader = await open();
  await service.drain(reader, () => "live", 1);

  expect(Object.fromEntries(service.values)).toEqual({ "a@10": 2 });
});

test("what is appended after a source has moved goes as late, although the forwarder was waiting for it", async () => {
  const { stream, state, node, reader: open } = memoryWorld();
  using first = node("gw1");
  using home = temporaryFolder();
  await using one = await first.start();
  await append(one, { a: [[10, 1]] });
  await one.forwarded();
  const times = Float64Array.of(Date.parse("2026-01-01T00:00:10Z") * 1_000);
  const moved = Block.of(1 as BlockId, [{ input: "a" as InputId, times, values: Float64Array.of(2) }]);
  const settled = Promise.withResolvers<void>();
  const stop = new AbortController();
  let taken = 0;
  const reader: BufferReader = {
    async take(_lane, { wait }, signal) {
      if (!wait) return undefined;
      if (taken++ > 0) return await orAbort(new Promise<never>(() => {}), signal);
      forwarder.sourceMoved();
      return moved;
    },
    settle: async () => settled.resolve(),
    release: () => {},
    [Symbol.asyncDispose]: async () => {},
  };
  const buffer = { reader: () => Promise.resolve(reader), stats: () => one.local.stats() };
  const options = { buffer, stream, state, node: "gw2", bootEpoch: "b", directory: home.path };
  const forwarder = new Forwarder(options, hastyRuntime());
  const running = forwarder.run(stop.signal).catch(() => {});
  await settled.promise;
  stop.abort();
  await running;
  expect(stream.messages.map(({ data }) => decodeFrameHeader(data).late)).toEqual([false, true]);
  const service = new ServiceStore();
  await using delivered = await open();
  await service.drain(delivered, () => "live", 1);

  expect(Object.fromEntries(service.values)).toEqual({ "a@10": 2 });
});

test("a source that moves while a block is published does not bring the block twice", async () => {
  const { stream, node } = memoryWorld();
  using first = node("gw1");
  using second = node("gw2");
  await using one = await first.start();
  await append(one, { a: [[10, 1]] });
  await one.forwarded();
  await using other = await second.start();
  let tries = 0;
  stream.before = (call) => {
    if (call !== "publish" || tries++ > 0) return;
    other.forwarder.sourceMoved();
    throw unreachable();
  };
  await append(other, { b: [[10, 2]] });
  await other.forwarded();

  expect(stream.messages).toHaveLength(2);
});
