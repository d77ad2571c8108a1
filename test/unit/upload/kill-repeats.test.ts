// How many points of a backlog in cold segments a kill repeats when requests are small.
import { expect, test } from "vitest";
import { openDiskBuffer } from "../../../src/buffer/disk/disk-buffer.ts";
import { bufferOptions } from "../../../src/buffer/disk/options.ts";
import { epochMicros, type InputId, type Point } from "../../../src/core/point.ts";
import type { Frame } from "../../../src/core/sink.ts";
import { inProcess } from "../../support/disk-store.ts";
import { MemoryDisk } from "../../support/memory-disk.ts";
import type { MemoryReader } from "../../support/memory-reader.ts";
import { ManualClock, testRuntime } from "../../support/runtime.ts";
import { SimulatedDelivery, storesOthers } from "../../support/simulated-delivery.ts";

const config = bufferOptions.parse({ reserveFreeDisk: "0", sync: "20ms", ackDelay: "1ms" });
const never = new AbortController().signal;
const requestBytes = 64 * 1_024;
const appends = 30;
const deep = 500;

/** Two series without common times. */
function samples(at: number, from: number): Point[] {
  return ["a", "b"].flatMap((input, k) =>
    Array.from({ length: deep }, (_, i) => ({
      input: input as InputId,
      time: epochMicros(from + (at * deep + i) * 10_000 + k * 1_001),
      value: (at * deep + i) / 7,
    })),
  );
}

test("a kill repeats one request of a backlog with few deep series, also when requests are small", async () => {
  const clock = new ManualClock();
  const runtime = testRuntime({ clock });
  const from = clock.now() - 3_600e6;
  let disk = new MemoryDisk();
  const open = (crash: { now: boolean }) =>
    openDiskBuffer(
      { directory: "/data", integration: "plant", config, segmentBytes: 65_536, requestBytes },
      runtime,
      never,
      inProcess(disk, crash),
    );
  let crash = { now: false };
  let buffer = await open(crash);
  for (let at = 0; at < appends; at++) {
    const appended = buffer.append(samples(at, from), { awaited: true }, never);
    await clock.advance(100);
    await appended;
  }
  // After a minute the sealed segments are compacted.
  await clock.advance(120_000);

  const delivered: number[] = [];
  const accepts = storesOthers(() => false);
  const deliver = async () => {
    const reader = (await buffer.reader()) as unknown as MemoryReader; // the test appends nothing through it
    const answer = (frame: Frame) => {
      delivered.push(frame.points);
      return accepts(frame);
    };
    return await SimulatedDelivery.start(answer, { clock, reader, runtime }, requestBytes);
  };
  const kills = 3;
  for (let kill = 0; kill < kills; kill++) {
    const before = delivered.length;
    await deliver();
    while (delivered.length < before + 4) await clock.advance(100);
    crash.now = true;
    disk = disk.afterKill();
    crash = { now: false };
    buffer = await open(crash);
  }
  await using _last = await deliver();
  while (buffer.stats().unsettledPoints > 0) await clock.advance(1_000);

  const all = delivered.reduce((sum, points) => sum + points, 0);
  expect(Math.max(...delivered)).toBeLessThan((2 * appends * deep) / 10);
  expect(all - 2 * appends * deep).toBeLessThanOrEqual(kills * Math.max(...delivered));
});
