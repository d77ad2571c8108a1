// Changed limits in the configuration are applied to the stream unless they would drop messages. A stream that an
// administrator has made with other settings gets those that delivery needs.
import type { StreamConfig } from "@nats-io/jetstream";
import { expect, test } from "vitest";
import { natsStream } from "../../../src/cluster/connection/nats-jetstream.ts";
import { eventually } from "../../support/eventually.ts";
import { natsWorld } from "../../support/nats-world.ts";
import { openReader } from "../../support/stream-place.ts";
import { append, ServiceStore, worldNode } from "../../support/stream-world.ts";

const mib = 2 ** 20;
const day = 86_400_000;

test("limits of a stream that exists change with the configuration, but never so that messages are dropped", async () => {
  await using world = await natsWorld({ count: 1 });
  const streamOf = (maxSize: number, maxAge: number) =>
    natsStream(world.link, { replicas: 1, maxSize: maxSize * mib, maxAge }, "test");
  const stream = streamOf(64, day);
  await stream.create();
  let last = 0;
  for (let i = 0; i < 4; i++)
    last = (await stream.publish(`${stream.subject}.gw1`, new Uint8Array(mib / 2), `m${i}`, last)) ?? 0;

  expect(await stream.adapt()).toEqual({ changed: [], kept: [] });
  const larger = streamOf(128, 2 * day);
  expect(await larger.adapt()).toEqual({ changed: ["maxSize 128 MiB", "maxAge 2d"], kept: [] });
  expect((await larger.state())?.maxBytes).toBe(128 * mib);
  expect(await streamOf(1, 2 * day).adapt()).toEqual({ changed: [], kept: ["maxSize 128 MiB"] });
  expect(await streamOf(128, 1).adapt()).toEqual({ changed: [], kept: ["maxAge 2d"] });
  expect(await stream.state()).toMatchObject({ messages: 4, maxBytes: 128 * mib });
  await stream.purgeBefore(last);
  expect(await streamOf(1, 2 * day).adapt()).toEqual({ changed: ["maxSize 1 MiB"], kept: [] });
  expect((await stream.state())?.messages).toBe(1);
});

test.each<[string, Partial<StreamConfig>]>([
  ["allow_direct", { allow_direct: false }],
  ["retention", { retention: "interest" }],
  ["max_msg_size", { max_msg_size: 100 }],
  ["subjects", { subjects: ["another.>"] }],
  ["discard", { discard: "old" }],
] as const)(
  "all points are delivered through a stream made again with another %s",
  {
    timeout: 60_000,
  },
  async (name, settings) => {
    await using world = await natsWorld({ count: 1 });
    using gateway = worldNode(world.stream, world.state, "gw1");
    await using collector = await gateway.start();
    await append(collector, { a: [[1, 1]] });
    await collector.forwarded();
    await world.deleteStream();
    const made = { name: "tagferry-points-test", subjects: ["tagferry.points.test.>"], allow_direct: true };
    await world.link.use("add", ({ manager }) => manager.streams.add({ ...made, ...settings }));
    await append(collector, { a: [[2, 2]] });

    expect((await world.stream.adapt()).changed.join()).toContain(name);
    await append(collector, { a: [[3, 3]] });

    const service = new ServiceStore();
    await using reader = await openReader(world.stream, world.state);
    await eventually(async () => {
      await service.drain(reader);
      return service.values.size === 3;
    });
  },
);
