// How much one request carries and how long it takes to build, over fixed and seeded workloads.
// Run: node test/bench/upload/packing.bench.ts
import type { BlockId } from "../../../src/core/buffer.ts";
import type { InputId } from "../../../src/core/point.ts";
import { Envelope, firstRequestId } from "../../../src/upload/frame-plan.ts";
import { FrameWriter } from "../../../src/upload/frame-writer.ts";
import { Packer } from "../../../src/upload/packer.ts";
import { Window } from "../../../src/upload/window.ts";
import { seeded } from "../../support/runtime.ts";

const envelope = new Envelope("c8ktonqsahsmemfs7lv0");
const maxBytes = 8 * 2 ** 20;
const start = Date.parse("2026-01-01T00:00:00Z") * 1_000;
const input = (tag: number) => `line1.machine2.t${String(tag).padStart(3, "0")}` as InputId;

interface Workload {
  readonly name: string;
  /** Points of one tick, by tag: time in microseconds after the start. */
  readonly times: (tick: number, tag: number) => number;
  readonly tags: number;
  readonly ticks: number;
}

const random = seeded(7);
const phases = Array.from({ length: 10_000 }, () => Math.floor(random() * 1_000));
const shared = (tick: number) => tick * 1e6;
const jittered = (tick: number, tag: number) => (tick * 1_000 + phases[tag]! + Math.floor(random() * 5) - 2) * 1_000;
const workloads: Workload[] = [
  { name: "A, 60 ticks", times: shared, tags: 1_000, ticks: 60 },
  { name: "A, 1,700 ticks", times: shared, tags: 1_000, ticks: 1_700 },
  { name: "B, 1 s", times: jittered, tags: 1_000, ticks: 1 },
  { name: "B, 10 s", times: jittered, tags: 1_000, ticks: 10 },
  { name: "B, 60 s", times: jittered, tags: 1_000, ticks: 60 },
  { name: "B, 600 s", times: jittered, tags: 1_000, ticks: 600 },
  { name: "B, 1,700 s", times: jittered, tags: 1_000, ticks: 1_700 },
  {
    name: "unrelated µs, 1,000 tags, 60 deep",
    times: (tick) => tick * 1e6 + Math.floor(random() * 1e6),
    tags: 1_000,
    ticks: 60,
  },
];

for (const { name, times, tags, ticks } of workloads) {
  const window = new Window(2_000_000);
  const values = Array.from({ length: tags }, () => random() * 100);
  const filling = performance.now();
  for (let tick = 0; tick < ticks; tick++) {
    const series = Array.from({ length: tags }, (_, tag) => {
      values[tag]! += random() - 0.5;
      const decimals = 10 ** (1 + (tag % 3));
      return {
        input: input(tag),
        times: Float64Array.of(start + times(tick, tag)),
        values: Float64Array.of(Math.round(values[tag]! * decimals) / decimals),
      };
    });
    window.add("live", { id: tick as BlockId, series }, tick);
  }
  const filled = performance.now() - filling;
  const packer = new Packer();
  const writer = new FrameWriter(envelope, maxBytes);
  const frames: { plan: number; write: number; slice: number; points: number; bytes: number; nulls: number }[] = [];
  let id = firstRequestId;
  for (;;) {
    const before = performance.now();
    const candidates = [...window.queues("live")]
      .filter((queue) => queue.count > 0)
      .map((queue) => ({ queue, since: 0 }));
    const plan = packer.plan(candidates, {
      maxBytes,
      envelopeBytes: envelope.bytes,
      maxSeries: 20_000,
      urgentBefore: -1,
    });
    if (!plan) break;
    const planned = performance.now();
    let sliceStart = planned;
    let slice = 0;
    for (const _ of writer.write(plan, id++)) {
      slice = Math.max(slice, performance.now() - sliceStart);
      sliceStart = performance.now();
    }
    const end = performance.now();
    slice = Math.max(slice, end - sliceStart);
    for (const { source, count } of plan.columns) window.settle("live", source, count);
    frames.push({
      plan: planned - before,
      write: end - planned,
      slice,
      points: plan.points,
      bytes: plan.bytes,
      nulls: plan.nulls,
    });
  }
  const points = frames.reduce((sum, frame) => sum + frame.points, 0);
  const bytes = frames.reduce((sum, frame) => sum + frame.bytes, 0);
  const largest = frames.reduce((a, b) => (b.points > a.points ? b : a));
  const median = (of: (frame: (typeof frames)[number]) => number) =>
    frames.map(of).sort((a, b) => a - b)[frames.length >> 1]!;
  console.log(
    `${name}: ${frames.length} requests, ${Math.round(points / frames.length)} points each (largest ${largest.points}, nulls ${largest.nulls}), ` +
      `${(bytes / points).toFixed(2)} bytes/point, plan ${median((f) => f.plan).toFixed(1)} ms, write ${median((f) => f.write).toFixed(1)} ms ` +
      `(${((median((f) => f.write + f.plan) * 1e6) / median((f) => f.points)).toFixed(0)} ns/point, longest slice ${Math.max(...frames.map((f) => f.slice)).toFixed(1)} ms), ` +
      `fill ${((filled * 1e6) / points).toFixed(0)} ns/point`,
  );
}
