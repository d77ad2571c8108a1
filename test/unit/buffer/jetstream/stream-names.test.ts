// The names of the inputs in the cluster.
import { zstdCompressSync } from "node:zlib";
import { expect, test } from "vitest";
import { unreachable } from "../../../support/memory-bucket.ts";
import { append, memoryWorld, ServiceStore } from "../../../support/stream-world.ts";

test("inputs that appear one by one stay few entries in the cluster, also over restarts", async () => {
  const { state, node, reader: open } = memoryWorld();
  using gateway = node("gw1");
  const service = new ServiceStore();
  await using reader = await open();
  const inputs = 20;
  for (let start = 0; start < 2; start++) {
    await using collector = await gateway.start();
    for (let i = 0; i < inputs / 2; i++) {
      await append(collector, { [`input ${start * inputs + i}`]: [[1, i]] });
      await collector.forwarded();
    }
    await service.drain(reader);
  }

  expect(await state.keys("names.")).toHaveLength(1);
  expect(service.values.size).toBe(inputs);
});

test("names that an earlier version has stored in many entries are complete, and become one entry's", async () => {
  const { state, node, reader: open } = memoryWorld();
  using gateway = node("gw1");
  const part = (names: readonly string[]) => zstdCompressSync(JSON.stringify(names));
  for (const [first, names] of [
    ["0", ["a"]],
    ["1", ["b", "c"]],
    ["3", ["d"]],
  ] as const)
    await state.create(`names.gw1.1234abcd.${first}`, part(names));
  const service = new ServiceStore();
  await using reader = await open();
  await using collector = await gateway.start();
  await append(collector, { c: [[1, 3]], e: [[1, 5]] });
  await collector.forwarded();
  await service.drain(reader);

  expect(Object.fromEntries(service.values)).toEqual({ "c@1": 3, "e@1": 5 });
  expect(await state.keys("names.")).toHaveLength(3);
});

test("a name whose entry was stored without an answer is not lost", async () => {
  const { state, node, reader: open } = memoryWorld();
  using gateway = node("gw1");
  const service = new ServiceStore();
  await using reader = await open();
  await using collector = await gateway.start();
  let writes = 0;
  state.after = (call) => {
    if ((call === "create" || call === "update") && writes++ % 2 === 0) throw unreachable();
  };
  for (const [at, input] of ["a", "b", "c", "d"].entries()) {
    await append(collector, { [input]: [[1, at]] });
    await collector.forwarded();
  }
  state.after = () => {};
  await service.drain(reader);

  expect(Object.fromEntries(service.values)).toEqual({ "a@1": 0, "b@1": 1, "c@1": 2, "d@1": 3 });
});
