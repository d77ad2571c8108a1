// A value that an agent hands over again, or late, never replaces a newer one of the same time that it has handed over.
import { expect, test } from "vitest";
import { Forwarder } from "../../../../src/buffer/jetstream/forwarder.ts";
import type { PointStream } from "../../../../src/cluster/connection/jetstream.ts";
import { Block, type BlockId } from "../../../../src/core/block.ts";
import type { BufferReader } from "../../../../src/core/buffer.ts";
import type { InputId } from "../../../../src/core/point.ts";
import { orAbort } from "../../../../src/lib/flow/abort.ts";
import { eventually } from "../../../support/eventually.ts";
import { unreachable } from "../../../support/memory-bucket.ts";
import { hastyRuntime } from "../../../support/stream-place.ts";
import { append, memoryWorld, ServiceStore, worldNode } from "../../../support/stream-world.ts";
import { temporaryFolder } from "../../../support/temporary-folder.ts";

const never = new AbortController().signal;
const stored = (service: ServiceStore) => Object.fromEntries(service.values);

test.each([
  { when: "while the agent runs", restarts: false },
  { when: "before the agent starts again", restarts: true },
])("servers that lose what is settled get no older values back in place of newer ones: $when", async ({ restarts }) => {
  const { stream, state, reader: open } = memoryWorld();
  // The agent cannot check what is settled, as between two of its checks.
  let isCut = false;
  const link: PointStream = {
    ...stream,
    async state() {
      if (isCut) throw unreachable();
      return await stream.state();
    },
  };
  using gateway = worldNode(link, state, "gw1");
  const service = new ServiceStore();
  await using collector = await gateway.start();
  await append(collector, {
    a: [
      [1, 1],
      [2, 2],
    ],
    b: [[1, 5]],
  });
  await collector.forwarded();
  await append(collector, { a: [[1, 3]] });
  await collector.forwarded();
  isCut = true;
  {
    await using reader = await open();
    const block = (await reader.take("backlog", { wait: false, maxPoints: 3 }, never))!;
    service.take(block);
    await reader.settle([{ block: block.id, inputs: block.inputs }]);
    await eventually(async () => {
      const next = (await reader.take("backlog", { wait: false, maxPoints: 1 }, never))!;
      reader.release([next.id]);
      return stream.messages.length === 1;
    });
  }

  state.expire("settled.points");
  if (restarts) await collector[Symbol.asyncDispose]();
  isCut = false;
  await using running = restarts ? await gateway.start() : collector;
  await eventually(() => running.forwarder.status.republished > 0);
  await using reader = await open();
  await service.drain(reader);

  expect(stored(service)).toEqual({ "a@1": 3, "a@2": 2, "b@1": 5 });
});

test("a message that was delivered in part gets no older values back when all servers lose their data", async () => {
  const { stream, state, node, reader: open } = memoryWorld();
  using gateway = node("gw1");
  const service = new ServiceStore();
  await using collector = await gateway.start();
  await append(collector, { a: [[1, 1]], b: [[1, 5]] });
  await collector.forwarded();
  await append(collector, { a: [[1, 3]] });
  await collector.forwarded();
  {
    await using reader = await open();
    const block = (await reader.take("backlog", { wait: false, maxPoints: 3 }, never))!;
    await reader.settle([{ block: block.id, inputs: ["a" as InputId] }]);
  }
  service.values.set("a@1", 3);
  let checks = 0;
  state.before = (call) => void (call === "get" && checks++);
  // By the second one, the agent has dropped what it must not keep.
  await eventually(() => checks > 1);

  stream.delete();
  state.wipe();
  await eventually(() => collector.forwarder.status.republished > 0);
  await using reader = await open();
  await service.drain(reader);

  expect(stored(service)).toEqual({ "a@1": 3, "b@1": 5 });
});

test("a value that waited at the start of the agent does not replace a newer one", async () => {
  const { stream, state, node, reader: open } = memoryWorld();
  using home = temporaryFolder();
  using other = node("gw2");
  await using collector = await other.start();
  const at = Float64Array.of(Date.parse("2026-01-01T00:00:10Z") * 1_000);
  const block = (value: number) =>
    Block.of(value as BlockId, [{ input: "a" as InputId, times: at, values: Float64Array.of(value) }]);
  // The local buffer does not know the times of points that were stored before its start and are settled.
  const blocks = [block(1), block(2)];
  const settled = Promise.withResolvers<void>();
  const reader: BufferReader = {
    take: async (_lane, { wait }, signal) =>
      blocks.shift() ?? (wait ? await orAbort(new Promise<never>(() => {}), signal) : undefined),
    settle: async ([done]) => {
      if (done?.block === 2) settled.resolve();
    },
    release: () => {},
    [Symbol.asyncDispose]: async () => {},
  };
  const buffer = {
    reader: () => Promise.resolve(reader),
    stats: () => ({ ...collector.local.stats(), unsettledPoints: 1 }),
  };
  const options = { buffer, stream, state, node: "gw1", bootEpoch: "b", directory: home.path };
  const stop = new AbortController();
  const running = new Forwarder(options, hastyRuntime()).run(stop.signal).catch(() => {});
  await settled.promise;
  stop.abort();
  await running;
  const service = new ServiceStore();
  await using delivered = await open();
  await service.drain(delivered, () => "live", 1);

  expect(stored(service)).toEqual({ "a@10": 2 });
});
