// Window, packer and writer without an uploader: plans, frames and their contents.
import { Block, type BlockId, type Series } from "../../src/core/block.ts";
import type { Lane } from "../../src/core/buffer.ts";
import type { InputId } from "../../src/core/point.ts";
import type { Steps } from "../../src/lib/flow/in-slices.ts";
import { Envelope, type PackedPlan } from "../../src/upload/packing/frame.ts";
import { Packer } from "../../src/upload/packing/packer.ts";
import { numberForm } from "../../src/upload/series/number-text.ts";
import type { SeriesQueue } from "../../src/upload/series/series-queue.ts";
import { SubBatchColumn } from "../../src/upload/window/sub-batch.ts";
import { Window } from "../../src/upload/window/window.ts";

export const packingIntegration = "c8ktonqsahsmemfs7lv0";
export const packingEnvelope = new Envelope(packingIntegration);

export function finished<T>(work: Steps<T>): T {
  for (;;) {
    const step = work.next();
    if (step.done) return step.value;
  }
}

/** Points of `input` that left the window, in order of arrival. */
export function extractedColumn(input: InputId, times: Float64Array, values: Float64Array, blocks: Float64Array) {
  return new SubBatchColumn(input, { times, values, forms: Uint8Array.from(values, numberForm), blocks });
}

/** A window that holds these series as one block. */
export function windowOf(series: readonly Series[], lane: Lane = "live"): Window {
  const window = new Window(series.reduce((sum, { times }) => sum + times.length + 8, 0));
  window.add(lane, Block.of(1 as BlockId, series), 0);
  return window;
}

/** The next frame of a lane. The points stay in the window. */
export function planOf(window: Window, maxBytes: number, packer = new Packer()): PackedPlan | undefined {
  const candidates = { queues: window.filled("live"), since: (queue: SeriesQueue) => window.since(queue) };
  const limits = { maxBytes, envelopeBytes: packingEnvelope.bytes, maxSeries: 20_000, urgentBefore: -1 };
  return finished(packer.plan(candidates, limits));
}

/** All frames that deliver the whole window. */
export function framesOf(window: Window, maxBytes: number): PackedPlan[] {
  const packer = new Packer();
  const frames: PackedPlan[] = [];
  for (let plan = planOf(window, maxBytes, packer); plan; plan = planOf(window, maxBytes, packer)) {
    frames.push(plan);
    for (const { source, count } of plan.parts) window.settle(source, count);
  }
  return frames;
}
