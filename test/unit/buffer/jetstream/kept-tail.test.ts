// What leaves the kept tail without being settled is accounted for.
import { expect, test } from "vitest";
import { openKeptTail } from "../../../../src/buffer/jetstream/kept-tail.ts";
import type { UnkeptFrame } from "../../../../src/buffer/jetstream/settled-frames.ts";
import { encodeFrame } from "../../../../src/buffer/jetstream/stream-frame.ts";
import { Block, type BlockId } from "../../../../src/core/block.ts";
import type { InputId } from "../../../../src/core/point.ts";
import { systemClock } from "../../../../src/lib/time/clock.ts";
import { temporaryFolder } from "../../../support/temporary-folder.ts";

const keepMs = 1_000;

function frameOf(number: number): Uint8Array {
  const values = Float64Array.of(number);
  const block = Block.of(1 as BlockId, [{ input: "x" as InputId, times: Float64Array.of(number), values }]);
  const header = { node: "gw1", epoch: "e", number, before: number, dictionary: "d", late: false, latest: number };
  return encodeFrame(header, block, [0], [0]);
}

test("a frame that becomes too old while another one is accounted for is accounted for too", async () => {
  using home = temporaryFolder();
  let now = 0;
  const clock = { ...systemClock(), monotonic: () => now };
  await using tail = await openKeptTail(
    { directory: home.path, keepMs, keepBytes: 2 ** 20, unreadable: () => {} },
    clock,
  );
  await tail.add(1, "stream", frameOf(0));
  now = keepMs / 2;
  await tail.add(2, "stream", frameOf(1));
  const accounted: number[] = [];
  const account = async (frames: readonly UnkeptFrame[]) => {
    accounted.push(...frames.map(({ sequence }) => sequence));
    now += keepMs;
  };
  now += keepMs * 0.6;
  for (let i = 0; i < 2; i++) await tail.trim(() => false, account);

  expect(accounted).toEqual([1, 2]);
  expect(tail.frames).toEqual([]);
});
