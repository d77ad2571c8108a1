// A message, node or input that cannot be processed delays no other one.
import { mkdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { SettlementRecord } from "../../../../src/buffer/jetstream/settled-frames.ts";
import { encodeFrame, type FrameHeader, messageIdOf } from "../../../../src/buffer/jetstream/stream-frame.ts";
import { FrameLease, OpenFrame } from "../../../../src/buffer/jetstream/stream-leases.ts";
import { subjectOf } from "../../../../src/buffer/jetstream/stream-names.ts";
import type { PointStream } from "../../../../src/cluster/connection/jetstream.ts";
import { Block, type BlockId } from "../../../../src/core/block.ts";
import { epochMicros, type InputId } from "../../../../src/core/point.ts";
import { eventually } from "../../../support/eventually.ts";
import { unreachable } from "../../../support/memory-bucket.ts";
import { MemoryDisk } from "../../../support/memory-disk.ts";
import { type LogLine, testRuntime } from "../../../support/runtime.ts";
import { openCollector } from "../../../support/stream-place.ts";
import { append, memoryWorld, ServiceStore } from "../../../support/stream-world.ts";
import { temporaryFolder } from "../../../support/temporary-folder.ts";

const never = new AbortController().signal;
const all = { wait: false, maxPoints: 1e6 } as const;
const stored = (service: ServiceStore) => Object.fromEntries(service.values);
const header: FrameHeader = {
  node: "gone",
  epoch: "e",
  number: 0,
  before: 0,
  dictionary: "d",
  late: false,
  latest: 1,
};

function frameOf(given: Partial<FrameHeader> = {}): Uint8Array {
  const times = Float64Array.of(epochMicros(1_767_225_600e6));
  const block = Block.of(1 as BlockId, [{ input: "x" as InputId, times, values: Float64Array.of(1) }]);
  return encodeFrame({ ...header, ...given }, block, [0], [0]);
}

const publish = (stream: PointStream, data: Uint8Array, node = "gone") =>
  stream.publish(subjectOf(stream, node), data, messageIdOf({ ...header, node }), 0);

test("a message that cannot be decoded is counted as lost and removed, one of a later version stays; others are delivered", async () => {
  const { stream, node, reader: open, lostMessages } = memoryWorld();
  await stream.create();
  const later = frameOf();
  later[0] = 2;
  await publish(stream, Buffer.from("not a frame"), "junk");
  await publish(stream, frameOf().subarray(0, 40), "torn");
  await publish(stream, later, "later");
  using gateway = node("gw1");
  await using collector = await gateway.start();
  await append(collector, { a: [[1, 1]] });
  await collector.forwarded();
  const service = new ServiceStore();
  await using reader = await open();
  await service.drain(reader, () => "live");
  await eventually(async () => {
    await service.drain(reader);
    return stream.messages[0]?.sequence === 3;
  });

  expect(stored(service)).toEqual({ "a@1": 1 });
  await eventually(() => lostMessages() === 2);
});

test("a forwarder goes on where the last message of its node, or of another, cannot be decoded", async () => {
  const { stream, node } = memoryWorld();
  await stream.create();
  const later = frameOf();
  later[0] = 2;
  await publish(stream, later, "gw1");
  await publish(stream, Buffer.from("not a frame"), "gw2");
  using gateway = node("gw1");
  await using collector = await gateway.start();
  collector.forwarder.sourceMoved();
  await append(collector, { a: [[1, 1]] });
  await collector.forwarded();

  expect(stream.messages).toHaveLength(3);
});

test("points whose names the cluster has lost hold up no others, and are delivered once the names are there", async () => {
  const { stream, state, node, reader: open } = memoryWorld();
  using first = node("gw1");
  using second = node("gw2");
  {
    await using collector = await first.start();
    await append(collector, { a: [[1, 1]] });
    await collector.forwarded();
  }
  state.wipe();
  await using other = await second.start();
  await append(other, { b: [[1, 2]] });
  await other.forwarded();
  const service = new ServiceStore();
  await using reader = await open();
  await eventually(async () => {
    await service.drain(reader);
    return service.values.size === 1;
  });
  expect(stored(service)).toEqual({ "b@1": 2 });

  await using _returned = await first.start();
  await eventually(async () => {
    await service.drain(reader);
    return service.values.size === 2;
  });
  expect(stored(service)).toEqual({ "a@1": 1, "b@1": 2 });
  expect(stream.messages.length).toBeLessThanOrEqual(2);
});

test("all that the cluster had is delivered after it lost stream and names while the collector was off", async () => {
  const { stream, state, node, reader: open } = memoryWorld();
  using gateway = node("gw1");
  {
    await using collector = await gateway.start();
    await append(collector, { a: [[1, 1]] });
    await collector.forwarded();
  }
  stream.delete();
  state.wipe();
  await using collector = await gateway.start();
  await append(collector, { b: [[2, 2]] });
  await collector.forwarded();
  const service = new ServiceStore();
  await using reader = await open();
  await service.drain(reader);

  expect(stored(service)).toEqual({ "a@1": 1, "b@2": 2 });
});

test("a collector goes on although another process has extended the names of its node", async () => {
  const { state, node, reader: open } = memoryWorld();
  using first = node("gw1");
  await using one = await first.start();
  await append(one, { a: [[1, 1]] });
  await one.forwarded();
  {
    using copy = node("gw1");
    await using other = await copy.start();
    await append(other, { b: [[1, 2]] });
    await other.forwarded();
  }
  await append(one, { c: [[1, 3]] });
  await one.forwarded();
  const service = new ServiceStore();
  await using reader = await open();
  await service.drain(reader);

  expect(stored(service)).toEqual({ "a@1": 1, "b@1": 2, "c@1": 3 });
  expect(await state.list("names.")).not.toHaveLength(0);
});

test("a replica that lacks a message for a moment does not bring a late one before it", async () => {
  const { stream, node, reader: open } = memoryWorld();
  using gateway = node("gw1");
  await using collector = await gateway.start();
  await append(collector, { a: [[10, 1]] });
  await collector.forwarded();
  await append(collector, { a: [[10, 2]] });
  await collector.forwarded();
  const behind: PointStream = {
    ...stream,
    next: (at) => (isBehind-- > 0 ? Promise.resolve(undefined) : stream.next(at)),
  };
  let isBehind = 1;
  const service = new ServiceStore();
  await using reader = await open(behind);
  await service.drain(reader);
  await service.drain(reader);

  expect(stored(service)).toEqual({ "a@10": 2 });
});

test("an input that stays refused keeps others going: its messages are not read again and again, the record stays small", async () => {
  const { stream, state, node, reader: open } = memoryWorld();
  using gateway = node("gw1");
  await using collector = await gateway.start();
  const except = ["a" as InputId];
  await using reader = await open();
  let reads = 0;
  stream.before = (call) => {
    if (call === "next") reads++;
  };
  const rounds = 25;
  for (let i = 1; i <= rounds; i++) {
    await append(collector, { a: [[i, i]], b: [[i, i]] });
    await collector.forwarded();
    const block = (await reader.take("backlog", { ...all, except }, never))!;
    expect(block.inputs).toEqual(["b"]);
    await reader.settle([{ block: block.id, inputs: block.inputs }]);
    expect(await reader.take("live", { ...all, except }, never)).toBeUndefined();
  }
  expect(reads).toBeLessThan(3 * rounds);
  expect((await state.get("settled.points"))!.value.length).toBeLessThan(40 * rounds);

  const rest = await reader.take("backlog", all, never);
  expect([rest?.inputs, rest?.points]).toEqual([["a"], rounds]);
});

test("what was delivered from one copy of a message is not delivered from another that was read before", async () => {
  const { stream, node, reader: open } = memoryWorld();
  using gateway = node("gw1");
  await using collector = await gateway.start();
  await append(collector, { a: [[1, 1]] });
  await collector.forwarded();
  await append(collector, {
    a: [
      [2, 2],
      [3, 3],
    ],
  });
  await collector.forwarded();
  // The message is in the stream twice, as after a second loss.
  const second = stream.messages[1]!;
  await stream.publish(second.subject, second.data, "copy", second.sequence);
  const service = new ServiceStore();
  await using reader = await open();
  const first = (await reader.take("backlog", { wait: false, maxPoints: 2 }, never))!;
  expect(first.points).toBe(1);
  service.take(first);
  await service.drain(reader, () => "live", 1);

  expect(service.deliveries).toBe(3);
});

test("what starts of a node long ago have settled does not come again while the stream holds it", async () => {
  const { stream, node, reader: open } = memoryWorld();
  using gateway = node("gw1");
  const service = new ServiceStore();
  await using reader = await open();
  using slow = node("gw0");
  await using other = await slow.start();
  await append(other, { b: [[1, 1]] });
  await other.forwarded();
  // The reader leases the message, so that it stays in the stream.
  expect(await reader.take("live", all, never)).toBeDefined();
  for (let i = 1; i <= 10; i++) {
    await using collector = await gateway.start();
    await append(collector, { a: [[i, i]] });
    await collector.forwarded();
    const block = (await reader.take("live", { wait: false, maxPoints: 1 }, never))!;
    service.take(block);
    await reader.settle([{ block: block.id, inputs: block.inputs }]);
  }
  stream.loseLast(0);
  await service.drain(reader);

  expect(service.deliveries).toBe(10);
});

test("a block of more frames than 65,536 settles each of them", () => {
  const frames = Array.from({ length: 65_537 }, () => new OpenFrame(header, Uint32Array.of(7)));
  const lease = new FrameLease(
    frames,
    frames.map(() => [0]),
  );
  lease.settle(Uint32Array.of(7));

  expect(frames.every(({ isSettled }) => isSettled)).toBe(true);
});

/** A world in which an agent has published one point, which it keeps in `directory`, and has stopped. */
async function withOneForwarded(directory: string) {
  const { stream, state, reader: open } = memoryWorld();
  const disk = new MemoryDisk();
  await using collector = await openCollector({ stream, state, node: "gw1", directory }, disk);
  await append(collector, { a: [[1, 1]] });
  await collector.forwarded();
  return { stream, state, disk, open };
}

test("a disk that takes nothing for the kept tail makes nothing come twice", async () => {
  using home = temporaryFolder();
  const directory = join(home.path, "forwarded");
  const { stream, state, disk, open } = await withOneForwarded(directory);
  let checks = 0;
  stream.after = (call) => {
    if (call === "last") checks++;
  };
  await using collector = await openCollector({ stream, state, node: "gw1", directory }, disk);
  await eventually(() => checks > 0);
  await rm(directory, { recursive: true });
  await writeFile(directory, "");
  await append(collector, { a: [[2, 2]] });
  await eventually(() => collector.runtime.lines.some(({ message }) => message.includes("kept on the local disk")));
  await rm(directory);
  await mkdir(directory);
  await collector.forwarded();
  const service = new ServiceStore();
  await using reader = await open();
  await service.drain(reader);

  expect(service.deliveries).toBe(2);
});

test("kept points that cannot be read after a restart hold up no others, and are reported", async () => {
  using home = temporaryFolder();
  const directory = join(home.path, "forwarded");
  const { stream, state, disk, open } = await withOneForwarded(directory);
  await rm(join(directory, "tail-1.log"));
  await mkdir(join(directory, "tail-1.log"));

  await using collector = await openCollector({ stream, state, node: "gw1", directory }, disk);
  await append(collector, { a: [[2, 2]] });
  await collector.forwarded();
  const service = new ServiceStore();
  await using reader = await open();
  await service.drain(reader);

  expect(service.deliveries).toBe(2);
  expect(collector.runtime.lines.map(({ message }) => message)).toContainEqual(
    expect.stringContaining("kept published points cannot be read"),
  );
});

test("an error while points are published after a long outage of the cluster ends the run, so that they are taken again", async () => {
  const { stream, node } = memoryWorld();
  using gateway = node("gw1");
  await using collector = await gateway.start();
  await append(collector, { a: [[1, 1]] });
  await collector.forwarded();
  const { clock } = collector.runtime;
  let from = clock.monotonic();
  const hasPassed = (ms: number) => clock.monotonic() - from > ms;
  // The forwarder waits for points by then.
  await eventually(() => hasPassed(2_000));
  from = clock.monotonic();
  stream.before = (call) => {
    if (call !== "publish") return;
    // Longer than the interval of its checks, at which a forwarder without points wakes up.
    throw hasPassed(20_000) ? new Error("a defect") : unreachable();
  };
  await append(collector, { a: [[2, 2]] });

  expect(await eventually(() => collector.failure)).toMatchObject({ message: "a defect" });
});

test("the record of what is settled stays smaller than the largest message of NATS", async () => {
  const { state } = memoryWorld();
  const runtime = testRuntime();
  const record = new SettlementRecord(state, "token", runtime.clock);
  await record.open();
  let at = 0;
  const bounds = Array.from({ length: 600_000 }, (_, i) => (at += 1 + ((i * 7_919) % 101)));
  const frames = [["gw1\nboot", bounds] as const];
  await record.write({ generation: 1, stream: "s", whole: bounds, partial: [], frames }, never);

  expect((await state.get("settled.points"))!.value.length).toBeLessThan(2 ** 20);
  const next = new SettlementRecord(state, "next", runtime.clock);
  expect((await next.open())?.frames[0]?.[1].at(-1)).toBe(bounds.at(-1));
});

test("two processes of one name do not publish against each other", async () => {
  const { stream, node, reader: open } = memoryWorld();
  using first = node("gw1");
  using copy = node("gw1");
  await using one = await first.start();
  await using other = await copy.start();
  for (let i = 1; i <= 4; i++) {
    await append(one, { a: [[i, i]] });
    await one.forwarded();
    await append(other, { b: [[i, i]] });
    await other.forwarded();
  }
  let checks = 0;
  stream.after = (call) => {
    if (call === "last") checks++;
  };
  await eventually(() => checks >= 6);

  const isReported = ({ level, message }: LogLine) => level === "error" && message.includes("agent.name");
  expect([one, other].map(({ runtime }) => runtime.lines.filter(isReported).length)).toEqual([1, 1]);
  expect(stream.messages).toHaveLength(8);
  const service = new ServiceStore();
  await using reader = await open();
  await service.drain(reader);
  expect(service.deliveries).toBe(8);
});

test("a message that the former process sent and that is stored late is not one of another agent", async () => {
  const { stream, node } = memoryWorld();
  using gateway = node("gw1");
  await using collector = await gateway.start();
  await append(collector, { a: [[1, 1]] });
  await collector.forwarded();
  await stream.publish(subjectOf(stream, "gw1"), frameOf({ node: "gw1", epoch: "former" }), "late", 1);
  let checks = 0;
  stream.after = (call) => {
    if (call === "last") checks++;
  };
  await eventually(() => checks >= 3);
  await append(collector, { a: [[2, 2]] });
  await collector.forwarded();

  expect(stream.messages).toHaveLength(3);
  expect(collector.runtime.lines.filter(({ level }) => level === "error")).toEqual([]);
});

test("the messages of a backlog are requested several at once, and each of them once", async () => {
  const { stream, node, reader: open } = memoryWorld();
  using gateway = node("gw1");
  await using collector = await gateway.start();
  const frames = 40;
  for (let i = 1; i <= frames; i++) {
    await append(collector, { a: [[i, i]] });
    await collector.forwarded();
  }
  await using reader = await open();
  let [reads, inFlight, most] = [0, 0, 0];
  stream.before = async (call) => {
    if (call !== "next") return;
    reads++;
    most = Math.max(most, ++inFlight);
    await new Promise((resolve) => setImmediate(resolve));
    inFlight--;
  };
  const block = await reader.take("backlog", all, never);
  expect(block?.points).toBe(frames);
  expect(reads).toBe(stream.messages.length);
  expect(most).toBeGreaterThan(4);
});
