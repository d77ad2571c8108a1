// One source from its deliveries to the requests: clock, mapping, buffer with a disk that fails at times, and frames.
// Only the disk and the machine's clock are simulated.
import fc from "fast-check";
import { expect } from "vitest";
import { AgentClock } from "../../src/agent/clock/agent-clock.ts";
import { holdForClock } from "../../src/agent/clock/clock-hold.ts";
import { openClockWatch, type TimeEvidence } from "../../src/agent/clock/clock-watch.ts";
import { runPipeline } from "../../src/agent/pipeline.ts";
import { sourceMonitor } from "../../src/agent/status/source-monitor.ts";
import { openDiskBuffer } from "../../src/buffer/disk/disk-buffer.ts";
import { bufferOptions } from "../../src/buffer/disk/options.ts";
import type { Series } from "../../src/core/block.ts";
import type { PointBuffer } from "../../src/core/buffer.ts";
import { epochMicros } from "../../src/core/point.ts";
import type { Delivery, Source } from "../../src/core/source.ts";
import { batchDelivery, readingsOf } from "../../src/lib/readings/reading-batch.ts";
import { openMapping } from "../../src/mapping/source-mapping.ts";
import { FrameWriter } from "../../src/upload/packing/frame.ts";
import { folder, inProcess } from "./disk-store.ts";
import { rule } from "./mapping.ts";
import { failure, MemoryDisk } from "./memory-disk.ts";
import { finished, packingEnvelope, planOf, windowOf } from "./packing.ts";
import { runs } from "./property.ts";
import { batchesOf, batchRules, batchStep, restOf } from "./reading-batches.ts";
import { ManualClock, testRuntime } from "./runtime.ts";

/** A delivery, and the events on the machine at the same time. */
const pathStep = fc.record({
  delivery: batchStep,
  /** Milliseconds by which the wall clock is set. */
  setBy: fc.constantFrom(0, 0, 0, 0, 0, 0, -500, 200_000, -100_000),
  /** The disk refuses writes for three seconds. */
  fails: fc.constantFrom(false, false, false, true),
});
type PathStep = typeof pathStep extends fc.Arbitrary<infer T> ? T : never;

interface PathStory {
  readonly steps: readonly PathStep[];
  /** Whether the clock at its start is behind the previous run. */
  readonly isBehind: boolean;
}

/** Longer than the time for which a clock that was set back is in doubt. */
const doubtMs = 130_000;

/**
 * Processes deliveries as columns and as plain readings, and expects the same result. Returns the number of requests.
 */
export async function expectSamePath(count: number, mostSteps: number): Promise<number> {
  let frames = 0;
  await fc.assert(
    fc.asyncProperty(fc.array(pathStep, { maxLength: mostSteps }), fc.boolean(), async (steps, isBehind) => {
      const story = { steps, isBehind };
      const [columns, plain] = [await carried(story, "columns"), await carried(story, "plain")];
      expect(columns).toEqual(plain);
      frames += plain.frames.length;
    }),
    runs(count),
  );
  return frames;
}

/** The result of the steps when the driver yields columns, or the same as plain readings. */
async function carried({ steps, isBehind }: PathStory, as: "columns" | "plain") {
  const machine = new ManualClock();
  const clock = new AgentClock(machine);
  const runtime = testRuntime({ clock });
  const reported: unknown[] = [];
  const disk = new MemoryDisk();
  let healsAt = 0;
  disk.fault = (call) => {
    if (call === "write" && machine.monotonic() < healsAt) throw failure("EIO", folder);
    return undefined;
  };
  const config = bufferOptions.parse({ sync: "0s", reserveFreeDisk: "0B" });
  const placed = { directory: folder, integration: "plant", config };
  const evidence: TimeEvidence = { synchronised: async () => "unknown", hasHardwareClock: async () => true };
  const file = { load: async () => undefined, save: async () => {} };
  const stop = new AbortController();

  async function* deliveries(signal: AbortSignal): AsyncGenerator<Delivery> {
    for (const [i, { delivery, setBy, fails }] of steps.entries()) {
      if (fails) healsAt = machine.monotonic() + 3_000;
      machine.stepWall(setBy);
      const batches = batchesOf(delivery, clock.now());
      const rest = { ...restOf(delivery), awaited: false, ack: () => reported.push(`ack ${i}`) };
      yield as === "columns" ? batchDelivery(batches, rest) : { ...rest, readings: readingsOf(batches) };
      await clock.sleep(delivery.afterMs, signal);
    }
    await clock.sleep(1e9, signal);
  }
  const source: Source = { deliveries, [Symbol.asyncDispose]: async () => {} };

  const buffer = await openDiskBuffer(placed, runtime, new AbortController().signal, inProcess(disk));
  const lastRan = isBehind ? epochMicros(clock.now() + 600e6) : undefined;
  await using watch = await openClockWatch({ policy: "hold", evidence, lastRan, clock, file }, runtime);
  const mapping = openMapping(
    {
      source: "bus1",
      rules: batchRules.map(rule),
      catalog: { describe: (...of) => reported.push(of) },
      watch: { failed: (...of) => reported.push(of), recovered: (...of) => reported.push(of) },
    },
    runtime,
  );
  const monitor = sourceMonitor({ name: "bus1", type: "test", tags: batchRules.length }, runtime);
  const hold = holdForClock("bus1", { watch, clock }, runtime);
  const running = runPipeline({ open: async () => source, mapping, buffer, monitor, hold }, runtime, stop.signal);
  const took = steps.reduce((sum, { delivery }) => sum + delivery.afterMs, 0);
  await machine.advance(took + doubtMs);
  stop.abort(new Error("over"));
  await machine.advance(5_000);
  await running;
  const { appendedPoints, duplicatePoints, collidedPoints, losses } = buffer.stats();
  const blocks = await allOf(buffer);
  const closed = buffer[Symbol.asyncDispose]();
  await machine.advance(5_000);
  await closed;
  return {
    reported,
    state: {
      tags: mapping.tags(),
      refusals: mapping.refusals(),
      faults: mapping.timeFaults(),
      vitals: monitor.vitals(),
    },
    counts: { appendedPoints, duplicatePoints, collidedPoints, losses },
    counters: [
      "mapping_filtered_readings",
      "mapping_dropped_readings",
      "mapping_rounded_values",
      "source_readings",
    ].map((name) => runtime.metric(`${name}_total`)),
    log: runtime.lines.map(({ message }) => message),
    frames: blocks.flatMap(framesOf),
  };
}

async function allOf(buffer: PointBuffer): Promise<(readonly Series[])[]> {
  await using reader = await buffer.reader();
  const blocks: (readonly Series[])[] = [];
  for (;;) {
    const options = { wait: false, maxPoints: 1_000, enough: 1_000 };
    const block = await reader.take("backlog", options, new AbortController().signal);
    if (!block) return blocks;
    blocks.push(block.series);
  }
}

function framesOf(series: readonly Series[]): string[] {
  const window = windowOf(series);
  const writer = new FrameWriter(packingEnvelope, 2 ** 16);
  const frames: string[] = [];
  for (let plan = planOf(window, 2 ** 16); plan; plan = planOf(window, 2 ** 16)) {
    frames.push(Buffer.from(finished(writer.write(plan, 1_000_000_000 + frames.length))).toString("latin1"));
    for (const { source, count } of plan.parts) window.settle(source, count);
  }
  return frames;
}
