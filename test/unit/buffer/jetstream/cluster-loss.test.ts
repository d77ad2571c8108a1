// Messages that the cluster loses are published again from the retained tail, in order and once.
import { expect, test } from "vitest";
import { AgentError } from "../../../../src/core/errors.ts";
import { eventually } from "../../../support/eventually.ts";
import { append, memoryWorld, ServiceStore, worldNode } from "../../../support/stream-world.ts";

const never = new AbortController().signal;
const stored = (service: ServiceStore) => Object.fromEntries(service.values);

test("a deleted stream gets everything again that was not delivered", async () => {
  const { stream, node, reader: open } = memoryWorld();
  using gateway = node("gw1");
  await using collector = await gateway.start();
  const service = new ServiceStore();
  await append(collector, { a: [[1, 1]] });
  await collector.forwarded();
  await using reader = await open();
  await service.drain(reader);
  await append(collector, { a: [[2, 2]], b: [[2, 5]] });
  await collector.forwarded();

  stream.delete();
  await append(collector, { a: [[3, 3]] });
  await collector.forwarded();
  await eventually(() => collector.forwarder.status.republished > 0);
  await service.drain(reader);

  expect(stored(service)).toEqual({ "a@1": 1, "a@2": 2, "b@2": 5, "a@3": 3 });
  expect(service.deliveries).toBe(4);
});

test("servers that lose the end of the stream get it again, although others have published behind it", async () => {
  const { stream, node, reader: open } = memoryWorld();
  using first = node("gw1");
  using second = node("gw2");
  await using one = await first.start();
  await using other = await second.start();
  const service = new ServiceStore();
  await append(one, { a: [[1, 1]] });
  await one.forwarded();
  await using reader = await open();
  await service.drain(reader);
  await append(one, { a: [[2, 2]] });
  await one.forwarded();
  await append(one, { a: [[2, 3]] });
  await one.forwarded();

  stream.loseLast(2);
  for (let i = 0; i < 4; i++) {
    await append(other, { b: [[i, i]] });
    await other.forwarded();
  }
  await append(one, { a: [[2, 4]] });
  await one.forwarded();
  await service.drain(reader);

  expect(stored(service)).toMatchObject({ "a@1": 1, "a@2": 4, "b@3": 3 });
  expect(one.forwarder.status.republished).toBe(2);
});

test("what another node publishes in place of lost messages is delivered", async () => {
  const { stream, node, reader: open } = memoryWorld();
  using first = node("gw1");
  using second = node("gw2");
  await using one = await first.start();
  await using other = await second.start();
  const service = new ServiceStore();
  for (let i = 1; i <= 3; i++) {
    await append(one, { a: [[i, i]] });
    await one.forwarded();
  }
  await using reader = await open();
  await service.drain(reader, () => "live");

  stream.loseLast(2);
  for (let i = 1; i <= 3; i++) {
    await append(other, { b: [[i, i]] });
    await other.forwarded();
  }
  await service.drain(reader);

  expect(stored(service)).toEqual({ "a@1": 1, "a@2": 2, "a@3": 3, "b@1": 1, "b@2": 2, "b@3": 3 });
  expect(service.deliveries).toBe(6);
});

test("the tail outlives the process: a restarted collector publishes again what the cluster loses later", async () => {
  const { stream, node, reader: open } = memoryWorld();
  using gateway = node("gw1");
  {
    await using collector = await gateway.start();
    await append(collector, { a: [[1, 1]] });
    await collector.forwarded();
  }
  stream.delete();

  await using collector = await gateway.start();
  await eventually(() => collector.forwarder.status.republished === 1);
  const service = new ServiceStore();
  await using reader = await open();
  await service.drain(reader);

  expect(stored(service)).toEqual({ "a@1": 1 });
});

test("an answer that is lost while lost messages are published again leaves out none of them", async () => {
  const { stream, node, reader: open } = memoryWorld();
  using first = node("gw1");
  using second = node("gw2");
  await using other = await second.start();
  {
    await using one = await first.start();
    for (const value of [1, 2]) {
      await append(one, { a: [[1, value]] });
      await one.forwarded();
    }
  }
  stream.loseLast(2);
  await append(other, { b: [[1, 1]] });
  await other.forwarded();
  let answers = 0;
  stream.after = (call) => {
    if (call === "publish" && answers++ === 0) throw new AgentError("CLUSTER_UNREACHABLE", "no answer");
  };

  await using one = await first.start();
  await append(one, { a: [[2, 3]] });
  await one.forwarded();
  const service = new ServiceStore();
  await using reader = await open();
  await service.drain(reader);

  expect(stored(service)).toEqual({ "a@1": 2, "a@2": 3, "b@1": 1 });
});

test("an answer that is lost makes nothing come twice, nor does a restart", async () => {
  const { stream, node, reader: open } = memoryWorld();
  using gateway = node("gw1");
  const service = new ServiceStore();
  {
    await using collector = await gateway.start();
    let answers = 0;
    stream.after = (call) => {
      if (call === "publish" && answers++ % 2 === 0) throw new AgentError("CLUSTER_UNREACHABLE", "no answer");
    };
    for (let i = 0; i < 5; i++) {
      await append(collector, { a: [[i, i]] });
      await collector.forwarded();
    }
  }
  stream.after = () => {};
  await using collector = await gateway.start();
  await append(collector, { a: [[5, 5]] });
  await collector.forwarded();
  await using reader = await open();
  await service.drain(reader);

  expect(service.values.size).toBe(6);
  expect(service.deliveries).toBe(6);
});

test("a full stream pauses forwarding; the points wait in the local buffer and go once there is room", async () => {
  const { stream, node, reader: open } = memoryWorld();
  using gateway = node("gw1");
  await using collector = await gateway.start();
  const service = new ServiceStore();
  await append(collector, { a: [[1, 1]] });
  await collector.forwarded();
  stream.maxBytes = 10;

  await append(collector, { a: [[2, 2]] });
  await eventually(() => collector.forwarder.status.paused === "full");
  expect(collector.local.stats().unsettledPoints).toBe(1);
  stream.maxBytes = 1_000;
  await collector.forwarded();
  await using reader = await open();
  await service.drain(reader);

  expect(stored(service)).toEqual({ "a@1": 1, "a@2": 2 });
  expect(collector.forwarder.status.paused).toBeUndefined();
});

test("settled messages are removed from the stream, and nothing else", async () => {
  const { stream, node, reader: open } = memoryWorld();
  using gateway = node("gw1");
  await using collector = await gateway.start();
  for (let i = 1; i <= 5; i++) {
    await append(collector, { a: [[i, i]] });
    await collector.forwarded();
  }
  await using reader = await open();
  const service = new ServiceStore();
  const held = (await reader.take("live", { wait: false, maxPoints: 1 }, never))!;
  await service.drain(reader);
  await eventually(async () => {
    await service.drain(reader);
    return stream.messages.length < 5;
  });

  expect(stream.messages.map(({ sequence }) => sequence)).toEqual([5]);
  await reader.settle([{ block: held.id, inputs: held.inputs }]);
});

test("points that the cluster dropped before they were delivered are published again and not counted as delivered", async () => {
  const { stream, node, reader: open } = memoryWorld();
  using gateway = node("gw1");
  await using collector = await gateway.start();
  const service = new ServiceStore();
  await append(collector, { a: [[1, 1]] });
  await collector.forwarded();
  await using reader = await open();
  await service.drain(reader);
  await append(collector, { a: [[2, 2]] });
  await collector.forwarded();

  stream.dropFirst(2);
  await append(collector, { a: [[3, 3]] });
  await collector.forwarded();
  await service.drain(reader);

  expect(stored(service)).toEqual({ "a@1": 1, "a@2": 2, "a@3": 3 });
});

test("points that the cluster drops after the agent has kept them are counted, also over a restart; delivered ones are not", async () => {
  const { stream, state, reader: open } = memoryWorld();
  using gateway = worldNode(stream, state, "gw1", 1);
  const service = new ServiceStore();
  await using reader = await open();
  {
    await using collector = await gateway.start();
    await append(collector, { a: [[1, 1]] });
    await collector.forwarded();
    await service.drain(reader);
    await append(collector, { a: [[2, 2]], b: [[3, 3]] });
    await collector.forwarded();
    await append(collector, { b: [[5, 5]] });
    await collector.forwarded();
    await eventually(() => collector.forwarder.status.keptBytes === 0);
    expect(collector.forwarder.status.loss).toBeUndefined();
  }
  stream.dropFirst(stream.messages.length);
  await using collector = await gateway.start();
  await append(collector, { a: [[7, 7]] });
  const loss = await eventually(() => collector.forwarder.status.loss);
  expect(loss).toMatchObject({ reason: "cluster", points: 3, intervals: [{ number: 1, points: 3 }] });
  expect([loss.from, loss.to].map((time) => new Date((time ?? 0) / 1_000).toISOString())).toEqual([
    "2026-01-01T00:00:02.000Z",
    "2026-01-01T00:00:05.000Z",
  ]);
  await collector.forwarded();
  await service.drain(reader);
  expect(stored(service)).toEqual({ "a@1": 1, "a@7": 7 });
});

test("of a run that was delivered in part, only the rest counts as lost", async () => {
  const { stream, state, reader: open } = memoryWorld();
  using gateway = worldNode(stream, state, "gw1", 1);
  await using reader = await open();
  await using collector = await gateway.start();
  for (const second of [1, 2, 3, 4]) {
    await append(collector, { a: [[second, second]] });
    await collector.forwarded();
  }
  await eventually(() => collector.forwarder.status.keptBytes === 0);
  const block = await reader.take("backlog", { wait: false, maxPoints: 1 }, new AbortController().signal);
  await reader.settle([{ block: block!.id, inputs: block!.inputs }]);
  stream.dropFirst(stream.messages.length);
  expect(await eventually(() => collector.forwarder.status.loss?.points)).toBe(3);
});

test("what an agent has published over many starts while nothing was delivered comes once, the last value last", async () => {
  const { stream, node, reader: open } = memoryWorld();
  using gateway = node("gw1");
  for (let i = 1; i <= 10; i++) {
    await using collector = await gateway.start();
    await append(collector, { a: [[1, i]] });
    await collector.forwarded();
  }
  await using collector = await gateway.start();
  await append(collector, { a: [[1, 11]] });
  await collector.forwarded();
  const service = new ServiceStore();
  await using reader = await open();
  await eventually(async () => {
    await service.drain(reader);
    return stream.messages.length === 0 && collector.forwarder.status.keptBytes === 0;
  });
  await service.drain(reader);

  expect(collector.forwarder.status.republished).toBe(0);
  expect(stored(service)).toEqual({ "a@1": 11 });
  expect(service.deliveries).toBe(11);
});
