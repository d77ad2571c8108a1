// The stream is trimmed only where its present leader has the messages that were settled.
import { expect, test } from "vitest";
import { eventually } from "../../../support/eventually.ts";
import { unreachable } from "../../../support/memory-bucket.ts";
import { append, memoryWorld, ServiceStore } from "../../../support/stream-world.ts";

const never = new AbortController().signal;

test("messages that took the place of lost ones while the settlement was being stored are not trimmed", async () => {
  const { stream, state, node, reader: open } = memoryWorld();
  using first = node("gw1");
  using second = node("gw2");
  await using one = await first.start();
  await using other = await second.start();
  const service = new ServiceStore();
  await using reader = await open();
  for (let i = 1; i <= 3; i++) {
    await append(one, { a: [[i, i]] });
    await one.forwarded();
  }
  const block = (await reader.take("backlog", { wait: false, maxPoints: 1e6 }, never))!;
  await reader.settle([{ block: block.id, inputs: block.inputs }]);
  let refused = 0;
  state.before = (call) => {
    if (call === "update" && ++refused > 0) throw unreachable();
  };
  // The next take trims the stream, which waits for the settlement.
  const drained = service.drain(reader);
  await eventually(() => refused > 0);
  stream.loseLast(2);
  await append(other, { b: [[1, 1]] });
  await eventually(() => other.local.stats().unsettledPoints === 0);
  const deliveredBefore: (number | undefined)[] = [];
  stream.before = (call) => {
    if (call === "purgeBefore") deliveredBefore.push(service.values.get("b@1"));
  };
  state.before = () => {};
  await drained;
  await eventually(async () => {
    await service.drain(reader);
    return deliveredBefore.length > 0;
  });

  expect(deliveredBefore[0]).toBe(1);
});
