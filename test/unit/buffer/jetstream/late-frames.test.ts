// Late messages, which only the backlog has, do not hold up fresh ones.
import { zstdCompressSync } from "node:zlib";
import { expect, test } from "vitest";
import { encodeFrame, messageIdOf } from "../../../../src/buffer/jetstream/stream-frame.ts";
import { subjectOf } from "../../../../src/buffer/jetstream/stream-names.ts";
import { Block, type BlockId } from "../../../../src/core/block.ts";
import type { InputId } from "../../../../src/core/point.ts";
import { memoryWorld } from "../../../support/stream-world.ts";

const never = new AbortController().signal;

test("a take of fresh points reads only some of many late messages", async () => {
  const { stream, state, reader: open } = memoryWorld();
  await stream.create();
  await state.create("names.gw2.d.0", zstdCompressSync(JSON.stringify(["x"])));
  const messages = 1_000;
  const block = (at: number) =>
    Block.of(at as BlockId, [{ input: "x" as InputId, times: Float64Array.of(at), values: Float64Array.of(at) }]);
  for (let number = 0; number < messages; number++) {
    const header = { node: "gw2", epoch: "e", number, before: number, dictionary: "d", late: true, latest: number };
    const frame = encodeFrame(header, block(number), [0], [0]);
    await stream.publish(subjectOf(stream, "gw2"), frame, messageIdOf(header), number);
  }
  await using reader = await open();
  let reads = 0;
  stream.before = (call) => {
    if (call === "next") reads++;
  };
  expect(await reader.take("live", { wait: false, maxPoints: 1e6 }, never)).toBeUndefined();

  expect(reads).toBeGreaterThan(0);
  expect(reads).toBeLessThan(messages / 2);
  let delivered = 0;
  for (;;) {
    const taken = await reader.take("live", { wait: true, maxPoints: 1e6 }, never);
    delivered += taken?.points ?? 0;
    if (delivered === messages) break;
  }
});
